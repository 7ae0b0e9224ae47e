"""The native adapter, against the request and response models of the library it adapts.

No native toolchain is needed: the server is played by answers that the library's own models
validate, and every request is checked to be one of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lean_interact.interface import (
    Command,
    CommandResponse,
    LeanError,
    ProofStep,
    ProofStepResponse,
)

from treewright.kernel.errors import UsageError
from treewright.lean import backend
from treewright.lean.native.goals import parse_goal
from treewright.lean.native.session import NativeSession
from treewright.lean.session import LeanSession, MissingModule
from treewright.lean.sorries import extract
from treewright.lean.types import (
    AuditReport,
    CheckResult,
    ProofState,
    SessionLost,
    TacticError,
    Timeout,
)

Answer = Callable[[Any], Any]


class ScriptedServer:
    """Answers as LeanServer.run does, from a function; remembers the requests."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Any] = []
        self.alive = True

    def run(self, request: Any, *, timeout: float | None = None) -> Any:
        assert isinstance(request, Command | ProofStep)
        request.model_dump(exclude_none=True, by_alias=True)
        self.requests.append(request)
        return self.answer(request)

    def is_alive(self) -> bool:
        return self.alive

    def kill(self) -> None:
        self.alive = False


def command(**data: Any) -> CommandResponse:
    return CommandResponse.model_validate({"env": 1, **data})


def position(line: int, column: int) -> dict[str, int]:
    return {"line": line, "column": column}


def test_it_is_a_lean_session() -> None:
    assert isinstance(NativeSession(ScriptedServer(lambda _: command())), LeanSession)


def test_a_proof_in_the_librarys_words() -> None:
    def answer(request: Any) -> Any:
        if isinstance(request, Command):
            goal = "p q : Prop\nh : p ∧ q\n⊢ q ∧ p"
            return command(
                sorries=[
                    {"pos": position(1, 0), "endPos": position(1, 5), "goal": goal, "proofState": 4}
                ]
            )
        if request.tactic == "bad":
            return LeanError(message="Lean error:\nunknown tactic")
        return ProofStepResponse.model_validate(
            {"proofStatus": "Completed", "proofState": 5, "goals": []}
        )

    server = ScriptedServer(answer)
    session = NativeSession(server, ["Mathlib"])
    start = session.start("∀ p q : Prop, p ∧ q → q ∧ p")
    assert isinstance(start, ProofState)
    assert [h.name for h in start.goals[0].hypotheses] == ["p", "q", "h"]
    assert start.goals[0].target == "q ∧ p"
    done = session.run_tactic(start, "exact ⟨h.2, h.1⟩")
    assert isinstance(done, ProofState)
    assert done.complete
    assert isinstance(session.run_tactic(start, "bad"), TacticError)
    step = server.requests[-2]
    assert isinstance(step, ProofStep)
    assert step.proof_state == 4
    assert server.requests[1].env == 1


def test_incomplete_proofs_are_not_complete() -> None:
    reply = ProofStepResponse.model_validate(
        {"proofStatus": "Incomplete: contains sorry", "proofState": 2, "goals": []}
    )
    result = NativeSession(ScriptedServer(lambda _: reply)).run_tactic(1, "sorry")
    assert isinstance(result, ProofState)
    assert not result.complete
    assert result.uses_sorry


def test_check_positions_and_sorries() -> None:
    source = "theorem é : 1 = 1 := by\n  sorry\n"
    reply = command(
        messages=[
            {
                "severity": "warning",
                "pos": position(1, 8),
                "endPos": position(1, 9),
                "data": "declaration uses `sorry`",
            }
        ],
        sorries=[
            {"pos": position(2, 2), "endPos": position(2, 7), "goal": "⊢ 1 = 1", "proofState": 0}
        ],
    )
    session = NativeSession(ScriptedServer(lambda _: reply))
    result = session.check(source)
    assert isinstance(result, CheckResult)
    assert result.has_sorry
    assert not result.ok
    (found,) = extract(session, source)
    assert source.encode()[found.start : found.end] == b"sorry"


def test_axioms() -> None:
    text = "'t' depends on axioms: [propext, Classical.choice]"
    reply = command(messages=[{"severity": "info", "pos": position(1, 0), "data": text}])
    report = NativeSession(ScriptedServer(lambda _: reply)).audit("t")
    assert isinstance(report, AuditReport)
    assert report.axioms == ("propext", "Classical.choice")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError("slow"), Timeout),
        (ConnectionAbortedError("gone"), SessionLost),
        (BrokenPipeError("gone"), SessionLost),
        (ChildProcessError("not running"), SessionLost),
    ],
)
def test_what_the_library_raises_becomes_a_result(error: Exception, expected: type) -> None:
    def answer(_: Any) -> Any:
        raise error

    assert isinstance(NativeSession(ScriptedServer(answer)).run_tactic(1, "simp"), expected)


def test_what_it_cannot_do_it_says() -> None:
    session = NativeSession(ScriptedServer(lambda _: command()))
    focus = session.focus(1, [0])
    assert isinstance(focus, TacticError)
    assert "the bundled Lean can" in focus.message
    with pytest.raises(UsageError, match="the bundled Lean can"):
        list(session.declarations())
    session.cancel()
    assert not session.alive
    assert isinstance(session.run_tactic(1, "simp"), SessionLost)


def test_a_failed_import_is_a_missing_module() -> None:
    reply = command(
        messages=[{"severity": "error", "pos": position(1, 0), "data": "unknown module prefix"}]
    )
    with pytest.raises(MissingModule):
        NativeSession(ScriptedServer(lambda _: reply), ["Mathlib"])


def test_reading_a_printed_goal() -> None:
    goal = parse_goal(
        "case succ\nα : Type\nx✝ y : Nat := 3\nh :\n  x✝ =\n    y\n⊢ ∀ z : Nat,\n    z = ?m.12"
    )
    assert goal.case == "succ"
    assert [(h.name, h.value, h.accessible) for h in goal.hypotheses[:3]] == [
        ("α", None, True),
        ("x✝", "3", False),
        ("y", "3", True),
    ]
    assert goal.target == "∀ z : Nat,\n    z = ?m.12"
    assert goal.metavariables == ("?m.12",)


# -- which backend ----------------------------------------------------------------------------


def test_auto_says_which_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert backend.choose("auto", tmp_path).backend == "wasm"
    project = tmp_path / "proj"
    (project / "Deep").mkdir(parents=True)
    (project / "lakefile.toml").write_text("")
    monkeypatch.setattr(backend, "find_lake", lambda: None)
    choice = backend.choose("auto", project / "Deep")
    assert choice.backend == "wasm"
    assert "no toolchain" in choice.reason
    monkeypatch.setattr(backend, "find_lake", lambda: "/bin/lake")
    choice = backend.choose("auto", project / "Deep")
    assert (choice.backend, choice.project) == ("native", project)
    assert backend.choose("wasm", project).backend == "wasm"


def test_native_without_what_it_needs_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="Lake project"):
        backend.choose("native", tmp_path)
    (tmp_path / "lean-toolchain").write_text("x")
    monkeypatch.setattr(backend, "find_lake", lambda: None)
    with pytest.raises(UsageError, match="elan"):
        backend.choose("native", tmp_path)
    monkeypatch.setattr(backend, "find_lake", lambda: "/bin/lake")
    monkeypatch.setattr(backend.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"treewright\[lean-native\]"):
        backend.choose("native", tmp_path)
    with pytest.raises(UsageError, match="no Lean backend"):
        backend.choose("other", tmp_path)
