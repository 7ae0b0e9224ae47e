"""A run whose budget ends within a depth is sound: some of its frontier was never asked."""

from __future__ import annotations

from tests.toy import ToyRepository, set_parameter
from treewright.tree.running.creation import Shape
from treewright.tree.running.runner import RunRequest, open_run
from treewright.tree.validation import validate


def test_a_node_that_the_budget_left_out_is_no_contradiction(toy: ToyRepository) -> None:
    """The root stays in the beam beside the promoted node, and gets the last idea."""
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    for number, text in enumerate((set_parameter("A", 2.0), set_parameter("A", 3.0))):
        toy.write(f"ideas/{number}.md", text)
    toy.commit("two ideas, the second better")
    shape = Shape(
        sweep_config_limit=8, ideas_per_node=1, max_total_idea_evals=2, max_depth=3, elites=2
    )
    with open_run(RunRequest(toy.path, "run", shape=shape, preflight=False)) as coordinator:
        coordinator.finish()
        found = coordinator.manifest
    assert found.stop_reason == "max_total_idea_evals"
    assert found.depths[1].frontier == ["n0001", "n0000"]
    assert found.nodes["n0001"].expanded_for_depth is None
    assert "n0001" not in found.frontier
    assert validate(toy.run_dir("run"), toy.path) == []
