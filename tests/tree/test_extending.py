"""A run that continues under other settings keeps its decisions and validates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.decisions import events
from tests.toy import ToyRepository, set_parameter
from treewright.kernel.errors import UsageError
from treewright.tree.records.model import UNSET, Manifest
from treewright.tree.run.creation import PolicyChoice, Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.validation import validate

DRY: dict[str, Any] = {"sweep_config_limit": 6, "dry_run": True, "dedupe_scope": "none"}


def go_on(repo: Path, policy: str | None = None, **shape: Any) -> Manifest:
    """Start or extend the run, search to its end, and validate it."""
    request = RunRequest(
        repo,
        "run",
        shape=Shape(**shape),
        choosing=PolicyChoice(policy),
        preflight=False,
        extend=True,
    )
    with open_run(request) as coordinator:
        while coordinator.advance():
            pass
        found = coordinator.manifest
        run_dir = coordinator.store.run_dir
    assert validate(run_dir, repo) == []
    return found


def decided(manifest: Manifest) -> dict[str, Any]:
    return {e.eval_id: e.decision for e in manifest.evaluations.values()}


def test_a_finished_run_can_be_extended_in_depth_width_and_budget(toy: ToyRepository) -> None:
    shape = {"ideas_per_node": 2, "max_total_idea_evals": 9, "stop_on_empty_frontier": False}
    first = go_on(toy.path, max_depth=1, **shape, **DRY)
    assert first.stop_reason == "max_depth_reached"
    kept = decided(first)
    second = go_on(toy.path, max_depth=3, beam_width=2)
    assert second.current_depth == 3
    assert len(second.depths[1].promoted) <= 2
    assert decided(second).items() >= kept.items(), "what was decided stays decided"
    assert second.stop_reason == "max_depth_reached"
    third = go_on(toy.path, max_depth=9, ideas_per_node=3)
    assert third.stop_reason == "max_total_idea_evals"
    assert third.spent.evals == 9
    fourth = go_on(toy.path, max_total_idea_evals=12)
    assert fourth.spent.evals == 12
    changes = [
        event["record"] for event in events(toy.run_dir("run")) if event["type"] == "steered"
    ]
    assert [change["command"]["settings"] for change in changes] == [
        {"max_depth": 3, "beam_width": 2},
        {"ideas_per_node": 3, "max_depth": 9},
        {"max_total_idea_evals": 12},
    ]
    assert changes[0]["before"] == {"max_depth": 1, "beam_width": 1}
    assert "@" in changes[0]["command"]["by"]


def test_repeating_the_same_flags_has_no_effect(toy: ToyRepository) -> None:
    shape: dict[str, Any] = {"ideas_per_node": 2, "max_depth": 1}
    go_on(toy.path, **shape, **DRY)
    go_on(toy.path, **shape)
    assert not [event for event in events(toy.run_dir("run")) if event["type"] == "steered"]


def test_another_value_without_extend_is_refused_with_a_hint(toy: ToyRepository) -> None:
    go_on(toy.path, ideas_per_node=2, max_depth=1, **DRY)
    request = RunRequest(toy.path, "run", shape=Shape(max_depth=2))
    with pytest.raises(UsageError, match="give --extend to change it"), open_run(request):
        pass
    for shape, why in (
        (Shape(sweep_config_limit=3), "--sweep-config-limit is 3 here but 6 in run"),
        (Shape(max_total_idea_evals=1), "--max-total-idea-evals 1 is too little: the run has 2"),
    ):
        request = RunRequest(toy.path, "run", shape=shape, extend=True)
        with pytest.raises(UsageError, match=why), open_run(request):
            pass


def _hopeless(toy: ToyRepository, ideas: int) -> None:
    """Write ideas that hurt, except the last one, which helps."""
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    for number in range(ideas - 1):
        toy.write(f"ideas/{number:02d}.md", set_parameter("B", 0.5 - number / 100))
    toy.write(f"ideas/{ideas - 1:02d}.md", set_parameter("A", 2.0))
    toy.commit("ideas of which only the last helps")


def test_an_unlucky_depth_does_not_end_a_patient_run(toy: ToyRepository) -> None:
    _hopeless(toy, 3)
    found = go_on(toy.path, ideas_per_node=1, max_depth=3, patience=2, sweep_config_limit=8)
    assert found.stop_reason == "empty_frontier"
    assert [record.promoted for record in found.depths] == [[], []]
    found = go_on(toy.path, patience=3)
    assert found.depths[2].promoted == ["n0001"]
    assert found.nodes["n0001"].parent_node_id == "n0000"
    assert found.stop_reason == "max_depth_reached"


def test_an_extended_run_asks_for_new_ideas(toy: ToyRepository) -> None:
    _hopeless(toy, 1)
    found = go_on(toy.path, ideas_per_node=2, max_depth=4, sweep_config_limit=8)
    assert (found.stop_reason, found.current_depth) == ("no_new_ideas", 1)
    toy.write("ideas/99.md", set_parameter("C", 1.5))
    found = go_on(toy.path)
    assert len(found.nodes) == 3
    assert found.nodes["n0002"].parent_node_id == "n0001"


def test_the_best_stays_in_the_beam(toy: ToyRepository) -> None:
    """The best node's children are worse than it, and another node's child improves on its parent:
    that child is promoted, and the best node is expanded again."""
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    toy.write("ideas/00.md", set_parameter("A", 9.0))
    toy.write("ideas/01.md", set_parameter("B", 1.5))
    toy.write("ideas/02.md", set_parameter("D", 0.9))
    toy.write("ideas/03.md", set_parameter("C", 0.5))
    toy.write("ideas/04.md", set_parameter("C", 0.4))
    toy.write("ideas/05.md", set_parameter("C", 0.3))
    toy.commit("a best that nothing improves at once")
    shape: dict[str, Any] = {"sweep_config_limit": 8, "ideas_per_node": 3, "patience": 2}
    found = go_on(toy.path, max_depth=2, beam_width=1, elites=2, **shape)
    first = found.depths[0].promoted[0]
    assert found.nodes[first].score == max(node.score for node in found.nodes.values())
    for record in found.depths[1:]:
        assert first in record.frontier, "the best is never dropped"
    assert set(found.depths[1].frontier) == {first, "n0000"}, "two elites: the best and the root"


@pytest.mark.parametrize(("policy", "given", "kept"), [(None, {}, 0), (None, {"elites": 1}, 1),
                                                        ("best-first", {}, UNSET)])  # fmt: skip
def test_a_new_beam_keeps_the_best_only_with_the_setting(
    toy: ToyRepository, policy: str | None, given: dict[str, Any], kept: object
) -> None:
    found = go_on(toy.path, policy, **DRY, max_depth=1, max_total_idea_evals=2, **given)
    assert found.elites == kept


def test_a_node_without_ideas_is_replaced_by_the_next_best(toy: ToyRepository) -> None:
    found = go_on(
        toy.path, ideas_per_node=5, max_depth=8, patience=4, elites=1, sweep_config_limit=8
    )
    assert found.stop_reason == "no_new_ideas"
    asked = [record.frontier for record in found.depths]
    assert asked == [["n0000"], ["n0001"], ["n0000"]]
    assert [len(record.eval_ids) for record in found.depths] == [5, 0, 0]


@pytest.mark.parametrize("policy", ["best-first", "ab-mcts"])
def test_a_run_without_a_barrier_can_be_extended_in_depth_and_budget(
    toy: ToyRepository, policy: str
) -> None:
    first = go_on(toy.path, policy, ideas_per_node=2, max_depth=1, max_total_idea_evals=4, **DRY)
    kept = decided(first)
    second = go_on(toy.path, max_depth=3, max_total_idea_evals=12)
    assert second.spent.evals == 12
    assert max(node.depth for node in second.nodes.values()) > 1
    assert decided(second).items() >= kept.items()
    third = go_on(toy.path, max_total_idea_evals=15)
    assert third.spent.evals == 15
    with pytest.raises(UsageError, match="--beam-width means nothing"):
        go_on(toy.path, beam_width=2)


def test_an_extended_run_without_a_barrier_asks_for_new_ideas(toy: ToyRepository) -> None:
    _hopeless(toy, 1)
    shape = {"ideas_per_node": 2, "max_depth": 3, "sweep_config_limit": 8}
    found = go_on(toy.path, "best-first", max_total_idea_evals=9, **shape)
    assert found.stop_reason == "no_new_ideas"
    toy.write("ideas/99.md", set_parameter("C", 1.5))
    found = go_on(toy.path)
    assert found.stop_reason == "no_new_ideas"
    assert len(found.nodes) > 2
