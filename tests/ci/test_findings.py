"""New sorries, failing checks, the summary and the runner's files. No Lean."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treewright.ci.changes import changed_since
from treewright.ci.findings import Attempt, Findings, OpenGoal, Problem, compare, fails
from treewright.ci.runner_files import write_findings
from treewright.ci.sorry_prover import SorryProver
from treewright.ci.summary import MAX_PATCH, MAX_ROWS, summary
from treewright.kernel.errors import UsageError
from treewright.proving.settings import Settings


def goal(name: str, text: str = "⊢ True", file: str = "A.lean", line: int = 1) -> OpenGoal:
    return OpenGoal(file, line, 3, name, text)


def test_a_sorry_is_identified_by_its_declaration_and_goal() -> None:
    base = [goal("same"), goal("restated", "⊢ p"), goal("gone"), goal("twice"), goal("moved")]
    head = [
        goal("same", line=9),
        goal("restated", "⊢ q"),
        goal("twice"),
        goal("twice", line=7),
        goal("moved", file="B.lean"),
        goal("added"),
    ]
    new, gone = compare(base, head)
    assert new == [goal("restated", "⊢ q"), goal("twice", line=7), goal("added")]
    assert gone == [goal("restated", "⊢ p"), goal("gone")]
    assert compare(head, head) == ([], [])


PROVED, OPEN = Attempt(goal("a"), "proved", proof="rfl"), Attempt(goal("b"), "unproved")
PROBLEM = Problem("A.lean", "could not be elaborated")


@pytest.mark.parametrize(
    ("findings", "failing"),
    [
        (Findings("c", ()), set()),
        (Findings("c", (), removed=(goal("a"),), notes=(PROBLEM,)), set()),
        (Findings("c", (), new=(PROVED,)), {"new-sorry"}),
        (Findings("c", (), new=(PROVED, OPEN)), {"new-sorry", "unproved"}),
        (Findings("c", (), problems=(PROBLEM,)), {"new-sorry", "unproved"}),
    ],
)
def test_findings_fail_according_to_the_setting(findings: Findings, failing: set[str]) -> None:
    assert {on for on in ("never", "new-sorry", "unproved") if fails(findings, on)} == failing


def test_goals_cannot_inject_markup_into_the_summary() -> None:
    hostile = goal("x", "h : `` | <img src=x>\n## not a heading\n⊢ p", file="A|`B`.lean")
    findings = Findings(
        "0123456789abcdef", ("A.lean",), new=(Attempt(hostile),), removed=(hostile,)
    )
    text = summary(findings, "--- a/A\n+++ b/A\n+```\n+# out\n")
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "## Treewright: 1 new sorry (0 proved), 1 removed"
    ]
    assert "````diff\n" in text
    assert "`0123456789ab`" in text
    many = Findings("c", ("A.lean",), removed=(goal("a"),) * (MAX_ROWS + 5))
    assert "… and 5 more." in summary(many, "")
    assert len(summary(many, "x" * (MAX_PATCH + 1))) < MAX_PATCH


def test_the_runners_files_are_appended_to(tmp_path: Path) -> None:
    outputs, step = tmp_path / "outputs", tmp_path / "summary"
    outputs.write_text("earlier=1\n")
    step.write_text("# Earlier\n")
    environment = {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(step)}
    findings = Findings("c", ("A.lean",), new=(PROVED, OPEN))
    written = write_findings(findings, "a patch\n", tmp_path, environment)
    assert (tmp_path / written.patch).read_text() == "a patch\n"
    assert outputs.read_text() == (
        "earlier=1\nnew=2\nremoved=0\nproved=1\nunproved=1\nproblems=0\n"
        "patch=.treewright/ci/proved.patch\n"
    )
    assert step.read_text().startswith("# Earlier\n## Treewright: 2 new sorries (1 proved)")
    again = write_findings(findings, "", tmp_path, {})
    assert again.patch == ""
    assert not (tmp_path / written.patch).exists()


def test_a_hard_goal_leaves_time_for_the_others(tmp_path: Path) -> None:
    def limit(asked: float | None, seconds_left: float) -> float | None:
        nobody: Any = None  # no search runs here
        trier = SorryProver(nobody, Settings(time_limit=asked), 100.0, tmp_path, nobody)
        trier._waiting = 4
        trier._deadline = time.monotonic() + seconds_left
        return trier._settings().time_limit

    assert 0 < (limit(None, 4000.0) or 0) <= 1000
    assert limit(5.0, 4000.0) == 5.0
    assert limit(5.0, -1.0) == 0.0


# -- git -------------------------------------------------------------------------------------


@pytest.fixture
def git(tmp_path: Path, git_binary: str) -> Callable[..., str]:
    """Run git in the repository `tmp_path / "repo"`."""
    repo = tmp_path / "repo"
    repo.mkdir()

    def run(*arguments: str) -> str:
        settings = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
        command = [git_binary, *settings, *arguments]
        done = subprocess.run(command, cwd=repo, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    run("init", "-q", "-b", "main")
    for name in ("A.lean", "sub/B.lean", "sub/C.lean", "lakefile.lean", "notes.txt"):
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text("old\n")
    run("add", "-A")
    run("commit", "-qm", "base")
    return run


def test_lean_files_that_changed_on_the_branch_are_found(
    tmp_path: Path, git: Callable[..., str]
) -> None:
    repo, base = tmp_path / "repo", git("rev-parse", "HEAD")
    git("switch", "-qc", "change")
    for name in ("A.lean", "sub/B.lean", "lakefile.lean", "notes.txt"):
        (repo / name).write_text("new\n")
    git("commit", "-qam", "change")
    git("switch", "-q", "main")
    (repo / "A.lean").write_text("other\n")
    git("commit", "-qam", "main went on")
    git("switch", "-q", "change")
    (repo / "sub" / "C.lean").unlink()  # uncommitted files are found too
    before = git("status", "--porcelain")

    change = changed_since(repo, "main")
    assert (change.base, change.files) == (base, ("A.lean", "sub/B.lean", "sub/C.lean"))
    assert changed_since(repo / "sub", base).files == ("sub/B.lean", "sub/C.lean")
    with change.at_base() as tree:
        assert (tree / "A.lean").read_text() == "old\n"
        assert (tree / "sub" / "C.lean").read_text() == "old\n"
    assert not tree.exists()
    assert git("status", "--porcelain") == before
    assert git("worktree", "list").count("\n") == 0


def test_a_wrong_call_is_a_one_line_error(tmp_path: Path, git: Callable[..., str]) -> None:
    repo = tmp_path / "repo"
    for base in ("no-such-branch", "--all", "HEAD:A.lean"):
        with pytest.raises(UsageError, match="there is no commit"):
            changed_since(repo, base)
    with pytest.raises(UsageError, match="not inside a git repository"):
        changed_since(tmp_path, "main")
    with pytest.raises(UsageError, match="there is no directory"):
        changed_since(repo / "absent", "main")


def test_lean_does_not_start_without_a_changed_lean_file(
    tmp_path: Path,
    git: Callable[..., str],
    treewright: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    repo = tmp_path / "repo"
    (repo / "notes.txt").write_text("new\n")
    done = treewright("ci", "--base", "main", "--fail-on", "new-sorry", cwd=repo)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 new sorries, 0 removed\n"
    assert "Lean backend" not in done.stderr
    assert git("status", "--porcelain") == "M notes.txt"
    wrong = treewright("ci", cwd=repo)
    assert wrong.returncode == 2
    assert "--base" in wrong.stderr
