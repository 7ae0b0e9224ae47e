"""A run whose budget ends within a depth is sound: some of its frontier was never asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.toy import ToyRepository, set_parameter
from treewright.tree.deciding import scoring
from treewright.tree.records.model import Manifest
from treewright.tree.running.creation import Shape
from treewright.tree.running.runner import RunRequest, open_run
from treewright.tree.validation import validate


def run(toy: ToyRepository, *, extend: bool = False, **shape: Any) -> Manifest:
    request = RunRequest(toy.path, "run", shape=Shape(**shape), preflight=False, extend=extend)
    with open_run(request) as coordinator:
        coordinator.finish()
        found = coordinator.manifest
    assert validate(toy.run_dir("run"), toy.path) == []
    return found


def until_the_budget_ends(toy: ToyRepository) -> Manifest:
    """The root stays in the beam beside the promoted node, and gets the last idea."""
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    for number, value in enumerate((2.0, 3.0, 4.0)):
        toy.write(f"ideas/{number}.md", set_parameter("A", value))
    toy.commit("three ideas, each better")
    found = run(
        toy,
        sweep_config_limit=8,
        ideas_per_node=1,
        max_total_idea_evals=2,
        max_depth=3,
        elites=2,
    )
    assert found.stop_reason == "max_total_idea_evals"
    assert found.depths[1].frontier == ["n0001", "n0000"]
    assert found.nodes["n0001"].expanded_for_depth is None
    return found


def test_a_node_that_the_budget_left_out_keeps_its_place(toy: ToyRepository) -> None:
    found = until_the_budget_ends(toy)
    assert found.frontier == ["n0002", "n0001"], "it was not asked, so it is not without ideas"
    found = run(toy, extend=True, max_total_idea_evals=4)
    assert found.depths[2].frontier == ["n0002", "n0001"]
    tried = [found.evaluations[e].parent_node_id for e in found.depths[2].eval_ids]
    assert tried == ["n0001", "n0002"]


def test_a_run_of_an_earlier_rule_goes_on_as_it_began(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There such a node counts as one without ideas."""
    with monkeypatch.context() as earlier:
        earlier.setattr(scoring, "RULE", 4)
        found = until_the_budget_ends(toy)
    assert found.frontier == ["n0002", "n0000"]
    found = run(toy, extend=True, max_total_idea_evals=4)
    assert found.scoring_rule == 4
    assert found.depths[2].frontier == ["n0002", "n0000"]
