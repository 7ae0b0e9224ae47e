"""Different code that measures the same counts once, in a real run and when it is validated."""

from __future__ import annotations

import pytest

from tests.toy import ToyRepository, diff_of_line, idea
from tests.tree.runs import RUN_ID
from treewright.tree.records import store
from treewright.tree.report import write_report
from treewright.tree.running.choosing import Choosing
from treewright.tree.running.creation import Shape
from treewright.tree.running.runner import RunRequest, open_run
from treewright.tree.validation import validate


@pytest.mark.parametrize("policy", [None, "best-first"])
def test_same_results_of_other_code_count_once(toy: ToyRepository, policy: str | None) -> None:
    for path in (toy.path / "ideas").glob("*.md"):
        path.unlink()
    for number, spelling in enumerate(("A 2.0", "A 2.00")):
        change = diff_of_line("params.txt", "A 1.0", spelling, 1)
        toy.write(f"ideas/{number}.md", idea(f"Set {spelling}", change))
    toy.commit("two ways to say the same")
    width = 2 if policy is None else None
    shape = Shape(
        max_depth=1,
        ideas_per_node=2,
        sweep_config_limit=8,
        beam_width=width,
        confirm_configs=4,
        max_total_idea_evals=2,
    )
    request = RunRequest(toy.path, RUN_ID, shape=shape, choosing=Choosing(policy=policy))
    with open_run(request) as coordinator:
        coordinator.finish()
    run_dir = toy.run_dir(RUN_ID)
    manifest = store.load(run_dir)
    fates = [e.decision.fate for e in manifest.evaluations.values() if e.decision]
    assert fates == ["promoted", "duplicate_results"]
    assert len(manifest.nodes) == 2
    assert validate(run_dir, toy.path) == []
    assert "same results as another" in write_report(run_dir, manifest).read_text()
