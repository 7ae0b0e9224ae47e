"""A session on the user's toolchain: a thin adapter over `lean-interact`'s LeanServer.

It sends `Command` and `ProofStep` and reads `CommandResponse`, `ProofStepResponse` and
`LeanError`, as that library documents them. What its REPL cannot do, this says so: a time limit
or a cancellation ends the process, goals are read from their printed form, and there is no
`focus`. The replay check runs on the bundled Lean only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from treewright.kernel.errors import MissingExtra, UsageError
from treewright.lean.inputs import header_of
from treewright.lean.native.goals import parse_goal
from treewright.lean.session import (
    DEFAULT_CHECK_SECONDS,
    DEFAULT_STEP_SECONDS,
    LeanError,
    MissingModule,
)
from treewright.lean.types import (
    AuditReport,
    CheckResult,
    Declaration,
    Diagnostic,
    ProofState,
    SessionInfo,
    SessionLost,
    Severity,
    SorryPlace,
    StepResult,
    TacticError,
    Timeout,
)

_SEVERITIES: dict[str, Severity] = {"error": "error", "warning": "warning"}
_GOAL = "treewright_goal"
_USES_SORRY = re.compile(r"declaration uses ['`]sorry['`]")
_AXIOMS = re.compile(r"depends on axioms: \[(.*)\]", re.DOTALL)


class Server(Protocol):
    """What is used of `lean_interact.LeanServer`."""

    def run(self, request: Any, *, timeout: float | None = None) -> Any: ...
    def is_alive(self) -> bool: ...
    def kill(self) -> None: ...


def open_native(project: Path, imports: Sequence[str], preamble: str) -> NativeSession:
    try:
        from lean_interact import LeanREPLConfig, LeanServer, LocalProject
    except ImportError:
        raise MissingExtra("--lean native", "lean-native") from None
    started = time.monotonic()
    try:
        config = LeanREPLConfig(project=LocalProject(directory=str(project)))
        server = LeanServer(config)
    except Exception as error:  # the library raises what git, lake and the REPL raise
        raise LeanError(f"the toolchain of {project} did not start: {error}") from error
    version = str(server.lean_version)
    return NativeSession(server, imports, preamble, version, time.monotonic() - started)


class NativeSession:
    """Implements `LeanSession` on a running `Server`."""

    def __init__(
        self,
        server: Server,
        imports: Sequence[str] = (),
        preamble: str = "",
        lean: str = "",
        startup_seconds: float = 0.0,
    ) -> None:
        from lean_interact import interface

        self._api = interface
        self._server = server
        self._env: int | None = None
        self._info = SessionInfo("native", lean, tuple(imports), startup_seconds, "lean-interact")
        header = header_of(imports) + preamble
        if header.strip():
            reply = self._run(self._api.Command(cmd=header), DEFAULT_CHECK_SECONDS)
            if isinstance(reply, SessionLost | Timeout):
                raise LeanError(f"the imports did not load: {reply}")
            if isinstance(reply, interface.LeanError):
                raise MissingModule(f"the project's Lean cannot import this: {reply.message}")
            errors = [m for m in reply.messages if m.severity == "error"]
            if errors:
                raise MissingModule(f"the project's Lean cannot import this: {errors[0].data}")
            self._env = reply.env

    @property
    def info(self) -> SessionInfo:
        return self._info

    @property
    def alive(self) -> bool:
        return self._server.is_alive()

    def start(self, statement: str, *, timeout: float = DEFAULT_STEP_SECONDS) -> StepResult:
        return self.start_declaration(f"theorem {_GOAL} : {statement} := by sorry", timeout=timeout)

    def start_declaration(
        self, source: str, *, timeout: float = DEFAULT_CHECK_SECONDS
    ) -> StepResult:
        if len(source.split()) == 1:
            source = f"theorem {_GOAL} : type_of% @{source.strip()} := by sorry"
        begun = time.monotonic()
        reply = self._run(self._api.Command(cmd=source, env=self._env), timeout)
        ms = (time.monotonic() - begun) * 1000
        if isinstance(reply, SessionLost | Timeout):
            return reply
        if isinstance(reply, self._api.LeanError):
            return TacticError(reply.message, "statement", ms=ms)
        messages = tuple(_diagnostic(m) for m in reply.messages)
        errors = [m.text for m in messages if m.severity == "error"]
        if errors:
            return TacticError("\n".join(errors), "statement", messages, ms)
        for sorry in reply.sorries:
            if sorry.proof_state is not None:
                return ProofState(sorry.proof_state, (parse_goal(sorry.goal),), messages, ms=ms)
        return TacticError("the declaration has no `sorry` to prove", "statement", ms=ms)

    def run_tactic(
        self, state: ProofState | int, text: str, timeout: float = DEFAULT_STEP_SECONDS
    ) -> StepResult:
        number = state if isinstance(state, int) else state.state
        begun = time.monotonic()
        reply = self._run(self._api.ProofStep(proof_state=number, tactic=text), timeout)
        ms = (time.monotonic() - begun) * 1000
        if isinstance(reply, SessionLost | Timeout):
            return reply
        if isinstance(reply, self._api.LeanError):
            return TacticError(reply.message, "tactic", ms=ms)
        messages = tuple(_diagnostic(m) for m in reply.messages)
        errors = [m.text for m in messages if m.severity == "error"]
        if errors or reply.proof_status.startswith("Error"):
            text = "\n".join(errors) or reply.proof_status
            return TacticError(text, "tactic", messages, ms)
        return ProofState(
            reply.proof_state,
            tuple(parse_goal(goal) for goal in reply.goals),
            messages,
            complete=reply.proof_status == "Completed",
            uses_sorry="sorry" in reply.proof_status,
            ms=ms,
        )

    def focus(self, state: ProofState | int, goals: Sequence[int]) -> StepResult:
        return TacticError(
            "the native backend cannot focus on some goals of a state; the bundled Lean can",
            "request",
        )

    def check(
        self, source: str, *, sorries: bool = False, timeout: float = DEFAULT_CHECK_SECONDS
    ) -> CheckResult | Timeout | SessionLost:
        begun = time.monotonic()
        reply = self._run(self._api.Command(cmd=source), timeout)
        ms = (time.monotonic() - begun) * 1000
        if isinstance(reply, SessionLost | Timeout):
            return reply
        if isinstance(reply, self._api.LeanError):
            return CheckResult((), stopped=reply.message, ms=ms)
        places = tuple(_place(source, s) for s in reply.sorries) if sorries else ()
        return CheckResult(
            tuple(_diagnostic(m) for m in reply.messages),
            env=reply.env,
            sorries=tuple(p for p in places if p is not None),
            ms=ms,
            # The REPL finds these in what was elaborated, whatever warnings a text turns off.
            unproved=tuple(f"line {s.start_pos.line}" for s in reply.sorries if s.start_pos),
        )

    def audit(self, name: str) -> AuditReport | TacticError:
        reply = self._run(
            self._api.Command(cmd=f"#print axioms {name}", env=self._env), DEFAULT_CHECK_SECONDS
        )
        if isinstance(reply, SessionLost | Timeout):
            return TacticError(str(reply), "request")
        if isinstance(reply, self._api.LeanError):
            return TacticError(reply.message, "request")
        text = "\n".join(m.data for m in reply.messages)
        if any(m.severity == "error" for m in reply.messages):
            return TacticError(text, "request")
        match = _AXIOMS.search(text)
        axioms = tuple(a.strip() for a in match[1].split(",")) if match else ()
        return AuditReport(name, "", axioms, (), (), ())

    def declarations(
        self, prefix: str = "", module: str = "", *, types: bool = True
    ) -> Iterator[Declaration]:
        raise UsageError("the native backend cannot list declarations; the bundled Lean can")

    def free(self, states: Sequence[ProofState | int]) -> None:
        """The REPL keeps its states until it ends; there is nothing to free."""

    def cancel(self) -> None:
        """The REPL cannot be interrupted: its process ends, and the session is lost."""
        self._server.kill()

    def close(self) -> None:
        self._server.kill()

    def _run(self, request: Any, timeout: float) -> Any:
        if not self._server.is_alive():
            return SessionLost("the Lean process is not running")
        try:
            return self._server.run(request, timeout=timeout)
        except TimeoutError:
            return Timeout(timeout)
        except (ConnectionError, ChildProcessError, OSError) as error:
            return SessionLost(str(error).splitlines()[0] if str(error) else "the process ended")


def _diagnostic(message: Any) -> Diagnostic:
    end = message.end_pos
    return Diagnostic(
        _SEVERITIES.get(message.severity, "information"),
        message.data,
        message.start_pos.line,
        message.start_pos.column,
        end.line if end else None,
        end.column if end else None,
        "hasSorry" if _USES_SORRY.search(message.data) else "",
    )


def _place(source: str, sorry: Any) -> SorryPlace | None:
    """A sorry with byte offsets; the REPL gives lines and columns in code points."""
    if sorry.start_pos is None or sorry.end_pos is None or sorry.proof_state is None:
        return None
    lines = source.split("\n")

    def offset(position: Any) -> int:
        before = lines[: position.line - 1]
        inside = lines[position.line - 1][: position.column]
        return sum(len(line.encode()) + 1 for line in before) + len(inside.encode())

    state = ProofState(sorry.proof_state, (parse_goal(sorry.goal),))
    start = offset(sorry.start_pos)
    in_tactic = not re.search(r":=\s*$", source.encode()[:start].decode())
    return SorryPlace(start, offset(sorry.end_pos), in_tactic, "", (state,))
