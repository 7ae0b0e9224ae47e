"""A node's untried ideas are offered to its children before new ideas are generated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.toy import ToyRepository
from treewright.tree.deciding.leftovers import source_of
from treewright.tree.records import events as ev
from treewright.tree.records.model import Manifest
from treewright.tree.run.creation import PolicyChoice, Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.parallelism import Parallelism
from treewright.tree.validation import validate


def run(toy: ToyRepository, *, workers: int = 1, observer=lambda _: None, **given: Any) -> Manifest:
    choosing = PolicyChoice(given.pop("policy", None), order=given.pop("order", None))
    extend = given.pop("extend", False)
    request = RunRequest(
        toy.path, "run", shape=Shape(**given), choosing=choosing, preflight=False,
        parallelism=Parallelism(workers), extend=extend,
    )  # fmt: skip
    with open_run(request, observer) as coordinator:
        coordinator.finish()
        found = coordinator.manifest
    assert validate(toy.run_dir("run"), toy.path) == []
    return found


def tried_on(manifest: Manifest, node_id: str) -> list[str]:
    """Return the keys of the ideas that were tried on a node."""
    keys = {idea.path: idea.key for node in manifest.nodes.values() for idea in node.ideas}
    evaluations = manifest.evaluations.values()
    return [keys[e.idea_path] for e in evaluations if e.parent_node_id == node_id]


@pytest.mark.parametrize(("order", "workers"), [("fixed", 1), ("fixed", 3), ("live", 2)])
def test_a_child_without_a_barrier_tries_its_parents_untried_ideas(
    toy: ToyRepository, order: str, workers: int
) -> None:
    """The root has all five ideas of the directory; its first child has no other ideas."""
    found = run(
        toy, policy="best-first", order=order, workers=workers, ideas_per_node=5, max_depth=3,
        sweep_config_limit=8, max_total_idea_evals=8,
    )  # fmt: skip
    root = found.nodes["n0000"]
    offered = [i for n in found.nodes.values() for i in n.ideas if source_of(i) is not None]
    assert offered
    assert {i.key for i in offered} <= {i.key for i in root.ideas}
    for node in found.nodes.values():
        keys = [idea.key for idea in node.ideas]
        assert len(set(keys)) == len(keys), "no idea twice on a node"
        for path in node.idea_chain[:-1]:
            chosen = {i.path: i.key for n in found.nodes.values() for i in n.ideas}
            assert chosen[path] not in keys, "what led here is not tried again"
    assert any(tried_on(found, name) for name in found.nodes if name != "n0000")


def test_ideas_left_by_a_budget_are_offered_when_the_run_resumes(toy: ToyRepository) -> None:
    """The search is interrupted after ideas were chosen and before one was queued, and is continued
    under a smaller budget."""

    def interrupt(event: ev.Event) -> None:
        if isinstance(event, ev.NodeExpanded):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(toy, observer=interrupt, ideas_per_node=4, max_depth=3, sweep_config_limit=8)
    first = run(toy, extend=True, max_total_idea_evals=2)
    root = first.nodes["n0000"]
    assert first.stop_reason == "max_total_idea_evals"
    assert (len(root.ideas), len(first.evaluations)) == (4, 2)
    assert len(first.nodes) == 2
    found = run(toy, extend=True, max_total_idea_evals=6)
    child = found.nodes["n0001"]
    waiting = [idea.path for idea in root.ideas[2:]]
    assert [source_of(idea) for idea in child.ideas] == [*waiting, None]
    assert [idea.key for idea in child.ideas[:2]] == [idea.key for idea in root.ideas[2:]]
    assert len(tried_on(found, "n0001")) == 3


def test_validation_finds_a_leftover_idea_without_an_origin(toy: ToyRepository) -> None:
    run(toy, policy="best-first", ideas_per_node=5, max_depth=3, sweep_config_limit=8,
        max_total_idea_evals=6)  # fmt: skip
    run_dir = toy.run_dir("run")
    text = (run_dir / "events.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    sources = [i["origin"] for e in lines if e["type"] == "expanded" for i in e["ideas"]]
    source = next(origin for origin in sources if origin.startswith("left over: "))
    (run_dir / "events.jsonl").write_text(text.replace(source, "directory"))
    (run_dir / "manifest.json").unlink()
    codes = {finding.code for finding in validate(run_dir, toy.path)}
    assert "queue_differs" in codes
