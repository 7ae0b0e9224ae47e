"""`sorries` and `bg` on a small real project, and the ledger's commands afterwards."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.orchestrator.test_durability import children
from tests.signals import as_from_a_terminal
from tests.waiting import gone, until
from treewright.cli.sorries import sorries
from treewright.orchestrator.background import Background
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.types import StrategyType

pytestmark = pytest.mark.xdist_group("orchestrator-lean")

Program = Callable[..., subprocess.CompletedProcess[str]]
SOURCE = """\
/-- sorry, this is a comment -/
def two : Nat := 2

theorem a (n : Nat) (h : 0 < n) : n ≠ 0 := by
  sorry

theorem b (p q : Prop) (hp : p) (hq : q) : p ∧ q := by
  constructor
  · sorry
  · exact sorry

theorem rests : two = 2 := by
  have : "sorry" = "sorry" := rfl
  sorry
theorem later : two = 2 ∧ True := ⟨rests, sorry⟩
theorem wrong : 1 = 2 := by sorry
example : True := by sorry
"""
# Not to depend on how busy the machine is: no throttle, much time for each goal.
PATIENT = ["--cpu-target", "1000", "--strategy", "micro", "--lean-sessions", "1"]
PATIENT += ["--strategy-timeout", "micro=300"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Sub").mkdir()
    (tmp_path / "A.lean").write_text(SOURCE)
    (tmp_path / "Sub" / "B.lean").write_text("import Nowhere\ntheorem x : True := sorry\n")
    return tmp_path


def test_sorries_are_what_lean_says_they_are(project: Path) -> None:
    done = CliRunner().invoke(sorries, [str(project), "--json", "--timeout", "300"])
    assert done.exit_code == 1, "one file could not be read"
    document = json.loads(done.stdout)
    found = {(s["declaration"], s["line"], s["column"]) for s in document["sorries"]}
    lines = SOURCE.splitlines()
    assert len(found) == 7
    assert ("a", 5, 3) in found
    assert ("b", 10, 11) in found
    for _, line, column in found:
        assert lines[line - 1][column - 1 :].startswith("sorry")
    first = document["sorries"][0]
    assert first["goal"] == "n ≠ 0"
    assert first["context"] == ["n : Nat", "h : 0 < n"]
    assert first["imports"] == ["Init"]
    assert 0 <= first["difficulty"] <= 1
    assert "Nowhere" in document["problems"][0]["error"]
    told = CliRunner().invoke(sorries, [str(project / "A.lean"), "--timeout", "300"])
    assert told.stderr.splitlines()[-1] == "7 sorries in 1 file"


def work_once(project: Path) -> tuple[Background, list[str]]:
    said: list[str] = []
    settings = OrchestratorConfig(
        cpu_target=1000.0,
        strategies=(StrategyType.MICRO,),
        timeouts={StrategyType.MICRO: 300.0},
    )

    async def main(ledger: Ledger) -> Background:
        background = Background(project, ledger, settings, announce=said.append)
        await background.run(once=True)
        return background

    with Ledger(project / ".treewright" / "ledger.db") as ledger:
        return asyncio.run(main(ledger)), said


@pytest.mark.usefixtures("shared_lean")
def test_background_proves_what_it_can_and_touches_nothing(
    project: Path, treewright: Program
) -> None:
    background, said = work_once(project)
    assert [p.declaration for p in background.proved] == ["a", "b", "rests", "later"]
    assert (project / "A.lean").read_text() == SOURCE
    assert any("has no name to prove it under" in text for text in said)
    assert any("Nowhere" in text for text in said)
    directory = background.directory
    result = (directory / "files" / "A.lean").read_text()
    assert "theorem wrong : 1 = 2 := by sorry" in result
    assert result.count("sorry") == 5, "a comment, a string twice, a false theorem, an example"
    summary = json.loads((directory / "summary.json").read_text())
    assert [p["declaration"] for p in summary["proved"]] == ["a", "b", "rests", "later"]
    patch = directory / "patches" / "A.lean.patch"
    subprocess.run(["git", "apply", str(patch)], cwd=project, check=True)
    assert (project / "A.lean").read_text() == result

    stats = json.loads(treewright("ledger", "stats", "--json", cwd=project).stdout)
    assert stats["goals"]["proved"] == 4
    assert stats["strategies"]["micro"]["successes"] == 4
    shown = treewright("ledger", "stats", cwd=project).stdout
    assert "4 proved" in shown
    rows = json.loads(
        treewright("ledger", "attempts", "--status", "proved", "--json", cwd=project).stdout
    )
    assert {row["goal_id"] for row in rows} == {f"A.lean:{n}" for n in ("a", "b", "rests", "later")}
    assert "A.lean:wrong" in treewright("ledger", "attempts", cwd=project).stdout
    exported = treewright("ledger", "export", cwd=project).stdout.splitlines()
    assert sum(json.loads(line)["success"] for line in exported) == 4
    target = project / "attempts.csv"
    treewright("ledger", "export", "--format", "csv", "--output", str(target), cwd=project)
    with target.open(newline="") as lines:
        assert len(list(csv.DictReader(lines))) == len(exported)


def test_background_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """In place; a file that changes is looked at again; SIGINT ends it in order, Lean with it."""
    file = tmp_path / "A.lean"
    file.write_text("theorem a : 1 + 1 = 2 := by sorry\n")
    log = tmp_path / "log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            [sys.executable, "-m", "treewright", "bg", ".", "--in-place", "--json", *PATIENT],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=output,
            preexec_fn=as_from_a_terminal,
        ) as run,
    ):
        try:
            until(lambda: "sorry" not in file.read_text(), 300, "a proof in place")
            until(lambda: "waiting for a file to change" in log.read_text(), 300, "waiting")
            file.write_text("theorem b : 2 + 2 = 4 := by sorry\n")
            until(lambda: "sorry" not in file.read_text(), 300, "the second proof")
        finally:
            started = children(run.pid)
            os.kill(run.pid, signal.SIGINT)
        printed, _ = run.communicate(timeout=120)
        assert run.returncode == 0
    assert started
    until(lambda: all(gone(pid) for pid in started), 60, "Lean to end")
    assert [p["declaration"] for p in json.loads(printed)["proved"]] == ["a", "b"]
    assert "2 declarations proved" in log.read_text()


def test_a_missing_project_or_ledger_is_one_line(tmp_path: Path, treewright: Program) -> None:
    for call, said in (
        (["bg", "nowhere"], "there is no nowhere"),
        (["sorries", "nowhere"], "there is no nowhere"),
        (["ledger", "stats"], "there is no ledger"),
    ):
        done = treewright(*call)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert said in done.stderr
