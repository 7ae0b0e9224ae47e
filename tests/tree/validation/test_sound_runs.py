"""Sound runs of every shape give no finding, also unfinished ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.tree.runs import RUN_ID, make_target, search
from tests.tree.steady.test_validation import FORGERIES
from tests.tree.validation.test_damage import DAMAGE
from treewright.kernel.errors import UsageError
from treewright.tree import validation
from treewright.tree.records import store
from treewright.tree.records.model import Evaluation
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.validation import validate, write_report
from treewright.tree.validation.checks import CHECKS, GIT_FAILED, HISTORY_CODES, STRUCTURE_CODES
from treewright.tree.validation.findings import ADVICE, advice

SHAPES: dict[str, dict[str, Any]] = {
    "no limit": {"ideas_per_node": 3, "max_depth": 1},
    "budget": {"ideas_per_node": 3, "max_total_idea_evals": 4, "sweep_config_limit": 8},
    "out of ideas": {"ideas_per_node": 8, "max_depth": 3, "sweep_config_limit": 8},
    "keeps a stale frontier": {
        "ideas_per_node": 1,
        "max_depth": 4,
        "sweep_config_limit": 8,
        "stop_on_empty_frontier": False,
    },
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dry_run", [False, True], ids=["real", "dry"])
def test_a_finished_run_has_no_findings(tmp_path: Path, shape: str, dry_run: bool) -> None:
    repo = make_target(tmp_path / "repo").path
    run_dir = search(repo, dry_run=dry_run, **SHAPES[shape])
    assert validate(run_dir, repo) == []


def test_a_dry_run_says_that_git_checks_are_skipped(tmp_path: Path) -> None:
    repo = make_target(tmp_path / "repo").path
    run_dir = search(repo, dry_run=True, max_depth=1, sweep_config_limit=8, confirm_configs=4)
    text = write_report(run_dir, validate(run_dir, repo)).read_text()
    assert text.count("skipped: a dry run has no git objects") == 3
    assert "No findings" in text


def test_a_run_that_stopped_after_any_event_is_consistent(tmp_path: Path) -> None:
    """Only leftover files may be found."""
    repo = make_target(tmp_path / "repo").path
    shape = Shape(ideas_per_node=2, max_depth=2, sweep_config_limit=8, confirm_configs=4)
    found: set[str] = set()

    def look(_: object) -> None:
        run_dir = repo / ".treewright" / "tree_runs" / RUN_ID
        if store.exists(run_dir):
            found.update(finding.code for finding in validate(run_dir, repo))

    with open_run(RunRequest(repo=repo, run_id=RUN_ID, shape=shape), look) as coordinator:
        coordinator.finish()
    passing = {
        "manifest_missing",
        "path_missing",
        "ref_missing",
        "worktree_missing",
        "stray_branch",
        "stray_worktree",
        "stray_directory",
    }
    assert found <= passing


def test_validating_a_missing_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no tree run"):
        validate(tmp_path / "nothing", tmp_path)


def test_every_finished_evaluation_is_recomputed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treewright.tree.validation import checks, measurements

    repo = make_target(tmp_path / "repo").path
    run_dir = search(repo, dry_run=True, ideas_per_node=4, max_depth=2, sweep_config_limit=8)
    scored: list[Evaluation] = []
    original = measurements._scores

    def spy(subject, evaluation: Evaluation, expected: list[int]):
        scored.append(evaluation)
        return original(subject, evaluation, expected)

    monkeypatch.setattr(measurements, "_scores", spy)
    assert checks.validate(run_dir, repo) == []
    assert [e.eval_id for e in scored] == list(store.load(run_dir).evaluations)


ROOT = Path(__file__).parents[3]
CODES = {
    *HISTORY_CODES,
    *STRUCTURE_CODES,
    GIT_FAILED,
    *(c for check in CHECKS for c in check.codes),
}


def test_every_used_code_is_listed() -> None:
    package = Path(validation.__file__).parent
    source = "".join(path.read_text() for path in package.glob("*.py"))
    assert set(re.findall(r'Finding\(\s*"([a-z_0-9]+)"', source)) <= CODES


def test_every_code_is_documented_and_has_advice() -> None:
    text = (ROOT / "docs" / "validation.md").read_text()
    for code in CODES:
        assert f"`{code}`" in text
        assert advice(code)
    assert set(ADVICE) <= CODES


def test_damage_covers_all_codes() -> None:
    forged = {code for _, code in FORGERIES.values()}
    assert CODES - {code for code, _ in DAMAGE.values()} - forged == {GIT_FAILED}
