"""A run with a budget that ends within a depth is sound: some of its frontier was never
expanded."""

from __future__ import annotations

from typing import Any

from tests.toy import ToyRepository, set_parameter
from treewright.tree.records.model import Manifest
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.validation import validate


def run(toy: ToyRepository, *, extend: bool = False, **shape: Any) -> Manifest:
    request = RunRequest(toy.path, "run", shape=Shape(**shape), preflight=False, extend=extend)
    with open_run(request) as coordinator:
        coordinator.finish()
        found = coordinator.manifest
    assert validate(toy.run_dir("run"), toy.path) == []
    return found


def until_the_budget_ends(toy: ToyRepository) -> Manifest:
    """Search until the budget ends: the root stays in the beam with the promoted node, and gets the
    last idea."""
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


def test_a_node_that_the_budget_skipped_stays_in_the_frontier(toy: ToyRepository) -> None:
    found = until_the_budget_ends(toy)
    assert found.frontier == ["n0002", "n0001"], "it was not asked, so it is not without ideas"
    found = run(toy, extend=True, max_total_idea_evals=4)
    assert found.depths[2].frontier == ["n0002", "n0001"]
    tried = [found.evaluations[e].parent_node_id for e in found.depths[2].eval_ids]
    assert tried == ["n0001", "n0002"]


def test_a_depth_cut_short_by_the_budget_does_not_end_the_run(toy: ToyRepository) -> None:
    """The root's second idea does not help, and the promoted node was never expanded."""
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    for number, change in enumerate((("A", 2.0), ("B", 0.5), ("A", 3.0))):
        toy.write(f"ideas/{number}.md", set_parameter(*change))
    toy.commit("the second is worse")
    shape: dict[str, Any] = {"sweep_config_limit": 8, "ideas_per_node": 1, "elites": 2}
    found = run(toy, max_total_idea_evals=2, max_depth=3, **shape)
    assert [each.promoted for each in found.depths] == [["n0001"], []]
    assert (found.stop_reason, found.depths[1].asked) == ("max_total_idea_evals", ["n0000"])
    found = run(toy, extend=True, max_total_idea_evals=4)
    assert found.depths[2].asked == ["n0000", "n0001"]
    assert found.depths[2].promoted == ["n0002"]
