"""`treewright sorries --json | treewright bank -`: what Lean finds open, through the portfolio."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from treewright.kernel.errors import UsageError
from treewright.orchestrator.goals.bank import parse_bank

SOURCE = """\
inductive Tape where
  | blank
  | cell (bit : Bool) (rest : Tape)

theorem Tape.same (t : Tape) : t = t := by
  sorry
theorem both (p q : Prop) (hp : p) (hq : q) : p ∧ q := by
  constructor
  · sorry
  · exact sorry
example : True := by sorry
"""


def document(project: Path, source: str) -> bytes:
    """As `sorries --json` prints it, with the positions that Lean would give."""
    data = source.encode()

    def record(declaration: str, start: int, tactic: bool) -> dict[str, object]:
        return {
            "file": "A.lean", "line": 1, "column": 1, "declaration": declaration, "goal": "p",
            "context": [], "imports": ["Init"], "difficulty": 0.3, "start": start,
            "end": start + 5, "tactic": tactic,
        }  # fmt: skip

    first = data.index(b"sorry")
    second = data.index(b"sorry", first + 1)
    third = data.index(b"sorry", second + 1)
    found = [
        record("Tape.same", first, True),
        record("both", second, True),
        record("both", third, False),
        record("_example", data.rindex(b"sorry"), True),
    ]
    return json.dumps({"project": str(project), "sorries": found, "problems": []}).encode()


def test_the_document_is_a_bank_of_declarations(tmp_path: Path) -> None:
    (tmp_path / "A.lean").write_text(SOURCE)
    bank = parse_bank(document(tmp_path, SOURCE), Path("-"), Path())
    assert [goal.id for goal in bank.goals] == ["A.lean:Tape.same", "A.lean:both"]
    assert bank.root == tmp_path
    both = bank.goals[1].place
    assert both is not None
    assert (both.source, both.declaration, len(both.holes)) == (SOURCE, "both", 2)
    assert both.tactic_holes == {both.holes[0]}
    (problem,) = bank.problems
    assert "an `example` has no name" in problem.reason


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the bank - has no goals; line 1: .*"):
        parse_bank(document(tmp_path, SOURCE), Path("-"), Path())


@pytest.mark.xdist_group("orchestrator-lean")
def test_the_pipe(tmp_path: Path, treewright: Callable[..., CompletedProcess[str]]) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "A.lean").write_text(SOURCE)
    listed = treewright("sorries", "project", "--json")
    assert listed.returncode == 0, listed.stderr
    done = treewright(
        "bank", "-", "--json", "--strategy", "micro", "--strategy-timeout", "micro=300",
        "--timeout", "600", "--cpu-target", "1000", "--lean-sessions", "1", input=listed.stdout,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["solved"] == ["A.lean:Tape.same", "A.lean:both"]
