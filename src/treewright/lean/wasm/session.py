"""A session on the bundled Lean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from treewright.lean.session import (
    DEFAULT_CHECK_SECONDS,
    DEFAULT_STEP_SECONDS,
    LeanError,
    MissingModule,
    SessionLostError,
)
from treewright.lean.types import (
    AuditReport,
    Cancelled,
    CheckResult,
    Declaration,
    ProofState,
    SessionInfo,
    SessionLost,
    Statement,
    StepResult,
    TacticError,
    Timeout,
)
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.process import LeanProcess, ProcessLost, Reply

# How much longer than its limit a request may take before the process is killed.
GRACE_SECONDS = 3.0
GRACE_FACTOR = 1.5
_IMPORT_SECONDS = 60.0
_PAGE = 2000


def header_of(imports: Sequence[str]) -> str:
    return "".join(f"import {module}\n" for module in imports)


class WasmSession:
    """Implements `LeanSession`. Opens with imports and a preamble of commands."""

    def __init__(
        self, home: LeanHome, imports: Sequence[str] = ("Init",), preamble: str = ""
    ) -> None:
        self._process = LeanProcess(home)
        try:
            self._open(tuple(imports), preamble)
        except BaseException:
            self.close()
            raise

    def _open(self, imports: tuple[str, ...], preamble: str) -> None:
        opened = self._ask("open", soft=None, hard=_IMPORT_SECONDS, text=header_of(imports))
        if opened.env is None:
            raise missing_module([d.text for d in opened.messages])
        self.environment = opened.env
        version = self._ask("version", soft=None, hard=10.0)
        if preamble.strip():
            result = self.elaborate(preamble, keep=True)
            if not isinstance(result, CheckResult):
                raise LeanError(f"the preamble did not elaborate: {result}")
            if result.env is None or result.errors:
                problem = result.errors[0].format("preamble") if result.errors else result.stopped
                raise LeanError(f"the preamble does not elaborate: {problem}")
            self.environment = result.env
        self._info = SessionInfo(
            backend="wasm",
            lean=version.lean,
            imports=imports,
            startup_seconds=self._process.startup_seconds,
            detail=f"Node {version.node}",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def info(self) -> SessionInfo:
        return self._info

    @property
    def alive(self) -> bool:
        return self._process.alive

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def heap_bytes(self) -> int:
        """Size of Lean's heap after the last request; it never shrinks."""
        return self._process.heap_bytes

    # -- proofs ---------------------------------------------------------------------------

    def start(self, statement: str, *, timeout: float = DEFAULT_STEP_SECONDS) -> StepResult:
        return self._step("start", timeout, env=self.environment, statement=statement)

    def start_declaration(
        self, source: str, *, timeout: float = DEFAULT_CHECK_SECONDS
    ) -> StepResult:
        if len(source.split()) == 1:
            return self._step("start", timeout, env=self.environment, declaration=source.strip())
        result = self.elaborate(source, sorries=True, timeout=timeout)
        if not isinstance(result, CheckResult):
            return result
        if result.errors:
            return TacticError(result.errors[0].text, "statement", result.diagnostics, result.ms)
        for place in result.sorries:
            if place.states:
                return place.states[0]
        return TacticError("the declaration has no `sorry` to prove", "statement", ms=result.ms)

    def run_tactic(
        self, state: ProofState | int, text: str, timeout: float = DEFAULT_STEP_SECONDS
    ) -> StepResult:
        return self._step("tactic", timeout, state=state_id(state), text=text)

    def focus(self, state: ProofState | int, goals: Sequence[int]) -> StepResult:
        return self._step("focus", DEFAULT_STEP_SECONDS, state=state_id(state), goals=list(goals))

    def free(self, states: Sequence[ProofState | int]) -> None:
        self._ask("free", soft=None, hard=30.0, states=[state_id(s) for s in states])

    # -- texts ----------------------------------------------------------------------------

    def check(
        self, source: str, *, sorries: bool = False, timeout: float = DEFAULT_CHECK_SECONDS
    ) -> CheckResult | Timeout | SessionLost:
        return self._elaborate(timeout, text=source, sorries=sorries)

    def check_file(
        self,
        source: str,
        *,
        keep: bool = False,
        policy: dict[str, Any] | None = None,
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> CheckResult | Timeout | SessionLost:
        """A whole file, optionally under a policy for a part of it (see `escapes`)."""
        extra = {"policy": policy} if policy is not None else {}
        return self._elaborate(timeout, text=source, keep=keep, **extra)

    def elaborate(
        self,
        commands: str,
        *,
        env: int | None = None,
        keep: bool = False,
        sorries: bool = False,
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> CheckResult | Timeout | SessionLost:
        """Commands without a header, on top of the session's environment or of `env`."""
        return self._elaborate(
            timeout,
            text=commands,
            env=self.environment if env is None else env,
            keep=keep,
            sorries=sorries,
        )

    def _elaborate(self, timeout: float, **fields: Any) -> CheckResult | Timeout | SessionLost:
        # A text with a header imports, on top of the time for the text itself.
        hard = hard_limit(timeout) + (0.0 if "env" in fields else _IMPORT_SECONDS)
        try:
            reply = self._process.request("elaborate", soft=timeout, hard=hard, fields=fields)
        except ProcessLost as lost:
            return SessionLost(str(lost))
        if reply.kind in ("timeout", "cancelled"):
            return Timeout(timeout, reply.ms)
        if not reply.ok:
            raise LeanError(f"Lean could not elaborate the text: {reply.error}")
        if reply.stopped == "header":
            raise missing_module([d.text for d in reply.messages])
        return CheckResult(reply.messages, reply.stopped, reply.env, reply.sorries, reply.ms)

    # -- environments ---------------------------------------------------------------------

    def audit(self, name: str, env: int | None = None) -> AuditReport | TacticError:
        env = self.environment if env is None else env
        reply = self._ask("audit", soft=None, hard=120.0, env=env, name=name)
        if not reply.ok:
            return TacticError(reply.error, "request", ms=reply.ms)
        return AuditReport(
            reply.name, reply.kind, reply.axioms, reply.local, reply.missing, reply.unsafe
        )

    def statement(self, name: str, env: int) -> Statement | None:
        return self._ask("statement", soft=None, hard=120.0, env=env, name=name).statement

    def statements(self, env: int) -> tuple[Statement, ...]:
        return self._ask("statements", soft=None, hard=120.0, env=env).statements

    def recheck(self, name: str, env: int, timeout: float) -> str:
        """Gives what `name` rests on to the kernel once more; '' if it agrees."""
        return self._ask("recheck", soft=None, hard=timeout, env=env, name=name).verdict

    def declarations(
        self, prefix: str = "", module: str = "", *, types: bool = True
    ) -> Iterator[Declaration]:
        offset, total = 0, 1
        while offset < total:
            reply = self._ask(
                "declarations",
                soft=None,
                hard=120.0,
                env=self.environment,
                prefix=prefix,
                module=module,
                offset=offset,
                limit=_PAGE,
                types=types,
            )
            yield from reply.items
            offset, total = offset + _PAGE, reply.total

    def free_environment(self, env: int) -> None:
        self._ask("free", soft=None, hard=30.0, envs=[env])

    def reset(self) -> None:
        """Forgets every proof state and every kept environment but the session's own."""
        self._ask("reset", soft=None, hard=30.0, env=self.environment)

    def memory(self) -> Reply:
        return self._ask("memory", soft=None, hard=10.0)

    # -- life -----------------------------------------------------------------------------

    def ping(self) -> float:
        """Milliseconds for a request that does nothing."""
        return self._ask("ping", soft=None, hard=10.0).ms

    def cancel(self) -> None:
        self._process.cancel()

    def close(self) -> None:
        self._process.kill()

    def _ask(self, op: str, *, soft: float | None, hard: float, **fields: Any) -> Reply:
        try:
            return self._process.request(op, soft=soft, hard=hard, fields=fields)
        except ProcessLost as lost:
            raise SessionLostError(f"the Lean session is lost: {lost}") from lost

    def _step(self, op: str, timeout: float, **fields: Any) -> StepResult:
        try:
            reply = self._process.request(op, soft=timeout, hard=hard_limit(timeout), fields=fields)
        except ProcessLost as lost:
            return SessionLost(str(lost))
        if reply.ok:
            return ProofState(
                reply.state,
                reply.goals,
                reply.messages,
                reply.complete,
                reply.uses_sorry,
                reply.ms,
            )
        match reply.kind:
            case "timeout":
                return Timeout(timeout, reply.ms)
            case "cancelled":
                return Cancelled(reply.ms)
            case "parse" | "tactic" | "exhausted" | "statement" as kind:
                return TacticError(reply.error, kind, reply.messages, reply.ms)
            case _:
                return TacticError(reply.error, "request", reply.messages, reply.ms)


def hard_limit(timeout: float) -> float:
    return timeout * GRACE_FACTOR + GRACE_SECONDS


def state_id(state: ProofState | int) -> int:
    return state if isinstance(state, int) else state.state


def missing_module(messages: Sequence[str]) -> MissingModule:
    text = messages[0].splitlines()[0] if messages else "the header cannot be imported"
    return MissingModule(
        f"the bundled Lean has Init, Std and Lean, and no other library: {text}; with a Lean "
        "toolchain, `treewright lean check --lean native` reads such files in their Lake project"
    )
