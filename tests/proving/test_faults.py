"""A check that was lost or timed out is no verdict: it is run again, and again on resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.proving.runs import Prove, SessionFactory, resume
from treewright.lean.session.answers import SessionLost
from treewright.lean.session.errors import LeanError
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Reason, Verdict
from treewright.proving.records import GoalResult
from treewright.proving.settings import Settings
from treewright.proving.targets import parse
from treewright.proving.trace import read_trace

pytestmark = pytest.mark.xdist_group("lean-session")

EASY = "∀ p q : Prop, p ∧ q → q ∧ p"
QUICK = Settings(simulations=20, step_timeout=20.0, refute=False)
TWO = """\
theorem both (p q : Prop) (hp : p) (hq : q) : p ∧ q := by
  constructor
  · sorry
  · sorry
"""


class FaultyReplayer:
    """A replay check that answers the first questions with faults."""

    def __init__(self, real: Replayer, faults: int, reason: Reason = "lost") -> None:
        self._real = real
        self._left = faults
        self._reason: Reason = reason

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def theorem(self, *args: Any, **kwargs: Any) -> Verdict:
        fault = self._fault()
        return self._real.theorem(*args, **kwargs) if fault is None else fault

    def text(self, *args: Any, **kwargs: Any) -> Verdict:
        fault = self._fault()
        return self._real.text(*args, **kwargs) if fault is None else fault

    def _fault(self) -> Verdict | None:
        self._left -= 1
        return Verdict(self._reason, "the process is gone") if self._left >= 0 else None


def verdicts(directory: Path) -> list[GoalResult]:
    return [x for x in read_trace(directory / "trace.jsonl") if isinstance(x, GoalResult)]


def test_a_check_that_was_lost_once_is_run_again(prove: Prove, replayer: Replayer) -> None:
    result, _ = prove(EASY, QUICK, FaultyReplayer(replayer, 1))
    assert [goal.status for goal in result.goals] == ["proved"]


@pytest.mark.parametrize("reason", ["lost", "timeout"])
def test_a_fault_that_stays_is_no_verdict_and_resume_tries_again(
    prove: Prove, replayer: Replayer, sessions: SessionFactory, reason: Reason
) -> None:
    result, directory = prove(EASY, QUICK, FaultyReplayer(replayer, 9, reason))
    assert not result.complete
    assert [(g.status, g.proof) for g in result.goals] == [("unchecked", "")]
    assert reason in result.goals[0].detail
    assert verdicts(directory) == []
    again = resume(directory, sessions, replayer)
    assert again.complete
    assert [goal.status for goal in again.goals] == ["proved"]


def test_a_search_without_a_lean_that_stays_alive_reaches_no_verdict(
    prove: Prove,
    replayer: Replayer,
    sessions: SessionFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It went through all tactics as lost, and said that every one of them had been tried."""
    kind = type(sessions()._session)  # pyright: ignore[reportAttributeAccessIssue]
    with monkeypatch.context() as gone:
        real = kind.start
        opened: list[str] = []

        def start(session: Any, statement: str) -> Any:
            opened.append(statement)
            fine = len(opened) == 1
            return real(session, statement) if fine else SessionLost("the process is gone")

        gone.setattr(kind, "start", start)
        gone.setattr(kind, "run_tactic", lambda *_: SessionLost("the process is gone"))
        with pytest.raises(LeanError, match="does not stay alive"):
            prove(EASY, QUICK)
    (directory,) = [path.parent for path in tmp_path.rglob("trace.jsonl")]
    assert verdicts(directory) == []
    assert resume(directory, sessions, replayer).proved == 1


def test_a_check_of_the_whole_file_that_was_lost_is_no_verdict(
    prove: Prove,
    replayer: Replayer,
    sessions: SessionFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "Two.lean"
    path.write_text(TWO)
    target = parse(str(path), None)
    lost = {"left": 9}
    real = type(sessions()._session).check  # pyright: ignore[reportAttributeAccessIssue]

    def check(session: Any, source: str, **kwargs: Any) -> Any:
        if "sorry" in source and source != TWO and lost["left"] > 0:
            lost["left"] -= 1
            return SessionLost("the process is gone")
        return real(session, source, **kwargs)

    monkeypatch.setattr(type(sessions()._session), "check", check)  # pyright: ignore[reportAttributeAccessIssue]
    result, directory = prove(target, QUICK)
    assert not result.complete
    assert result.goals[0].status == "unchecked"
    lost["left"] = 0
    again = resume(directory, sessions, replayer)
    assert (again.proved, again.complete) == (2, True)


def test_partial_proofs_whose_last_check_was_lost_are_settled_on_resume(
    prove: Prove, replayer: Replayer, sessions: SessionFactory, tmp_path: Path
) -> None:
    path = tmp_path / "Three.lean"
    path.write_text(TWO + "theorem third (p : Prop) (hp : p) : p := by\n  sorry\n")
    faulty = FaultyReplayer(replayer, 0)
    real = faulty.text
    calls: list[str] = []

    def text(*args: Any, **kwargs: Any) -> Verdict:
        calls.append(args[1])
        # Both declarations pass; the check that settles the partial proof in the text with the
        # third, and those after it, are lost.
        return real(*args, **kwargs) if len(calls) <= 2 else Verdict("timeout", "over 120 s")

    faulty.text = text  # pyright: ignore[reportAttributeAccessIssue]
    result, directory = prove(parse(str(path), None), QUICK, faulty)
    assert not result.complete
    assert [g.status for g in result.goals] == ["partial", "proved", "proved"]
    assert resume(directory, sessions, replayer).proved == 3
