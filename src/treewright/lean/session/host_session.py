"""`HostSession`: a session on a Lean of either host, with the protocol as Python methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import msgspec

from treewright.lean.hosts.host import Host
from treewright.lean.project.module_feed import ModuleFeed
from treewright.lean.project.project import Project
from treewright.lean.session.answers import (
    AuditReport,
    Cancelled,
    CheckResult,
    Declaration,
    Diagnostic,
    Parsed,
    ProofState,
    SessionInfo,
    SessionLost,
    StepResult,
    TacticError,
    Timeout,
)
from treewright.lean.session.inputs import header_of
from treewright.lean.session.interface import (
    DEFAULT_CHECK_SECONDS,
    DEFAULT_STEP_SECONDS,
    LeanError,
    MissingModule,
    SessionLostError,
)
from treewright.lean.session.knowledge import NOTHING_KNOWN, Exploration, Knowledge, TestResult
from treewright.lean.session.lemma_errors import explained
from treewright.lean.session.process import LeanProcess, ProcessLost, Reply

# The process is killed if a request takes longer than its limit times the factor, plus the seconds.
GRACE_SECONDS = 3.0
GRACE_FACTOR = 1.25
IMPORT_SECONDS = 60.0
_PAGE = 2000


class HostSession:
    """A `LeanSession` on one process. It opens with imports and a preamble of commands."""

    def __init__(
        self,
        host: Host,
        imports: Sequence[str] = ("Init",),
        preamble: str = "",
        project: Project | None = None,
    ) -> None:
        self._host = host
        self._process = LeanProcess(host)
        try:
            self._feed = ModuleFeed(self._process, project)
            self._open(tuple(imports), preamble)
        except BaseException:
            self.close()
            raise

    def _open(self, imports: tuple[str, ...], preamble: str) -> None:
        header = header_of(imports)
        self._prepare(header)
        opened = self._ask("open", soft=None, hard=IMPORT_SECONDS, text=header)
        if opened.env is None:
            raise missing_module(self._host, opened.messages)
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
            backend=self._host.backend,
            lean=version.lean,
            imports=imports,
            startup_seconds=self._process.startup_seconds,
            detail=self._host.detail,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def info(self) -> SessionInfo:
        return self._info

    @property
    def host(self) -> Host:
        return self._host

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
        self,
        state: ProofState | int,
        text: str,
        timeout: float = DEFAULT_STEP_SECONDS,
        *,
        heartbeats: int = 0,
    ) -> StepResult:
        return self._step(
            "tactic", timeout, state=state_id(state), text=text, heartbeats=1000 * heartbeats
        )

    def focus(self, state: ProofState | int, goals: Sequence[int]) -> StepResult:
        return self._step("focus", DEFAULT_STEP_SECONDS, state=state_id(state), goals=list(goals))

    def survey(self, state: ProofState | int, *, library: bool = False) -> Knowledge:
        """Return lemmas and facts for the first goal of a state.

        Raises:
            LeanError: the session is lost.
        """
        reply = self._ask(
            "survey",
            soft=DEFAULT_STEP_SECONDS,
            hard=hard_limit(DEFAULT_STEP_SECONDS),
            state=state_id(state),
            library=library,
        )
        return reply.survey or NOTHING_KNOWN

    def test(
        self, state: ProofState | int, *, samples: int = 60, seed: int = 1, seconds: float = 1.0
    ) -> TestResult:
        """Try the first goal of a state on random values. Nothing is proved by that.

        Raises:
            LeanError: the session is lost.
        """
        if self._host.backend != "wasm":
            return TestResult("unknown", reason="only the bundled Lean tests goals")
        reply = self._ask(
            "test",
            soft=seconds + DEFAULT_STEP_SECONDS,
            hard=hard_limit(seconds + DEFAULT_STEP_SECONDS),
            state=state_id(state),
            samples=samples,
            seed=seed,
            ms=round(seconds * 1000),
        )
        assert reply.test is not None
        return reply.test

    def explore(
        self,
        state: ProofState | int,
        *,
        size: int = 5,
        samples: int = 32,
        seed: int = 1,
        seconds: float = 3.0,
        most: int = 4000,
    ) -> Exploration:
        """Return equations between small terms over the functions of a state's first goal.

        They hold on random values; nothing is proved.

        Raises:
            LeanError: the session is lost.
        """
        if self._host.backend != "wasm":
            return Exploration((), 0, ())
        reply = self._ask(
            "explore",
            soft=seconds + DEFAULT_STEP_SECONDS,
            hard=hard_limit(seconds + DEFAULT_STEP_SECONDS),
            state=state_id(state),
            size=size,
            samples=samples,
            seed=seed,
            ms=round(seconds * 1000),
            most=most,
        )
        assert reply.explored is not None
        return reply.explored

    def free(self, states: Sequence[ProofState | int]) -> None:
        self._ask("free", soft=None, hard=30.0, states=[state_id(s) for s in states])

    # -- texts ----------------------------------------------------------------------------

    def check(
        self,
        source: str,
        *,
        sorries: bool = False,
        until: str = "",
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> CheckResult | Timeout | SessionLost:
        extra = {"until": until} if until and sorries else {}
        result = self._elaborate(timeout, text=source, sorries=sorries, audit=True, **extra)
        if not isinstance(result, CheckResult):
            return result
        diagnostics = tuple(explained(source, each) for each in result.diagnostics)
        return msgspec.structs.replace(result, diagnostics=diagnostics)

    def check_file(
        self,
        source: str,
        *,
        keep: bool = False,
        rules: dict[str, Any] | None = None,
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> CheckResult | Timeout | SessionLost:
        """Elaborate a whole file, optionally under rules for a part of it.

        `verify/restrictions.py` makes the rules.
        """
        extra = {"policy": rules} if rules is not None else {}
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
        """Elaborate commands without a header, on the session's environment or on `env`."""
        return self._elaborate(
            timeout,
            text=commands,
            env=self.environment if env is None else env,
            keep=keep,
            sorries=sorries,
        )

    def _elaborate(self, timeout: float, **fields: Any) -> CheckResult | Timeout | SessionLost:
        try:
            if "env" not in fields:
                # The modules of the header are imported first, under a limit that is not the
                # text's: a text may loop where Lean cannot be interrupted.
                self._feed.prepare(fields["text"])
                text = {"text": fields["text"]}
                self._process.request("open", soft=None, hard=IMPORT_SECONDS, fields=text)
            reply = self._process.request(
                "elaborate", soft=timeout, hard=hard_limit(timeout), fields=fields
            )
        except ProcessLost as lost:
            return SessionLost(str(lost))
        if reply.kind in ("timeout", "cancelled"):
            return Timeout(timeout, reply.ms)
        if not reply.ok:
            raise LeanError(f"Lean could not elaborate the text: {reply.error}")
        if reply.stopped == "header":
            raise missing_module(self._host, reply.messages)
        return CheckResult(
            reply.messages,
            reply.stopped,
            reply.env,
            reply.sorries,
            reply.imports,
            reply.ms,
            reply.unproved,
        )

    def parse(self, text: str, category: str, *, after: str = "", name: str = "") -> Parsed:
        """Parse a text that stands after another text. The text itself is not run.

        `inputs.Parser` describes the arguments.
        """
        self._prepare(after)
        reply = self._ask(
            "parse",
            soft=DEFAULT_CHECK_SECONDS,
            hard=hard_limit(DEFAULT_CHECK_SECONDS),
            text=text,
            category=category,
            after=after,
            name=name,
        )
        if not reply.ok:
            raise LeanError(f"Lean could not parse the text: {reply.error}")
        if reply.stopped == "interrupted":
            raise LeanError("the text in front did not elaborate in time")
        return Parsed(reply.root, next(iter(reply.problem.splitlines()), ""), reply.known)

    def command_within(self, text: str, start: int, end: int) -> str:
        """Return the kind of a command that begins in bytes [start, end), or ''. It is not run."""
        self._prepare(text)
        reply = self._ask(
            "begins",
            soft=DEFAULT_CHECK_SECONDS,
            hard=hard_limit(DEFAULT_CHECK_SECONDS),
            text=text,
            start=start,
            end=end,
        )
        if not reply.ok:
            raise LeanError(f"Lean could not parse the text: {reply.error}")
        return reply.problem

    # -- environments ---------------------------------------------------------------------

    def audit(self, name: str, env: int | None = None) -> AuditReport | TacticError:
        env = self.environment if env is None else env
        reply = self._ask("audit", soft=None, hard=120.0, env=env, name=name)
        if not reply.ok:
            return TacticError(reply.error, "request", ms=reply.ms)
        return AuditReport(
            reply.name, reply.kind, reply.axioms, reply.local, reply.missing, reply.unsafe
        )

    def export(
        self, env: int, whole: msgspec.Raw, stated: msgspec.Raw, timeout: float
    ) -> tuple[msgspec.Raw, msgspec.Raw]:
        """Return the declarations of a text as data for the judge.

        Args:
            env: the environment of the text.
            whole: names that are exported with their proofs.
            stated: names that are exported without proofs.
            timeout: seconds for Lean.

        Returns:
            The data, and the names of imported project declarations in it.
        """
        reply = self._ask(
            "export",
            soft=timeout,
            hard=hard_limit(timeout),
            env=env,
            whole=whole,
            stated=stated,
        )
        if not reply.ok:
            raise LeanError(f"what the text declares could not be exported: {reply.error}")
        return reply.data, reply.imported

    def declarations(
        self, prefix: str = "", module: str = "", *, types: bool = True, plain: bool = False
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
                plain=plain,
            )
            yield from reply.items
            offset, total = offset + _PAGE, reply.total

    def free_environment(self, env: int) -> None:
        self._ask("free", soft=None, hard=30.0, envs=[env])

    def reset(self) -> None:
        """Forget every proof state, and every kept environment except the session's own."""
        self._ask("reset", soft=None, hard=30.0, env=self.environment)

    def memory(self) -> Reply:
        return self._ask("memory", soft=None, hard=10.0)

    # -- life -----------------------------------------------------------------------------

    def ping(self) -> float:
        """Send a request that does nothing, and return the milliseconds it took in Lean."""
        return self._ask("ping", soft=None, hard=10.0).ms

    def cancel(self) -> None:
        self._process.cancel()

    def close(self) -> None:
        self._process.kill()

    def _prepare(self, text: str) -> None:
        try:
            self._feed.prepare(text)
        except ProcessLost as lost:
            raise SessionLostError(f"the Lean session is lost: {lost}") from lost

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


def missing_module(host: Host, messages: Sequence[Diagnostic]) -> MissingModule:
    said = messages[0].text.splitlines() if messages else []
    return MissingModule(host.lacking(said[0] if said else "the header cannot be imported"))
