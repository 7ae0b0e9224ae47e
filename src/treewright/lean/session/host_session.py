"""`HostSession`: a Lean process with an imported environment, for both hosts.

A session does one thing at a time. Its methods return results, also for errors in Lean. They raise
only usage errors and `LeanError`, when the request is impossible. `cancel` is the one method that
another thread may call meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import msgspec

from treewright.lean.hosts.host import Host
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
from treewright.lean.session.errors import (
    DEFAULT_CHECK_SECONDS,
    DEFAULT_STEP_SECONDS,
    LeanError,
    MissingModule,
    SessionLostError,
)
from treewright.lean.session.inputs import header_of
from treewright.lean.session.knowledge import NOTHING_KNOWN, Exploration, Knowledge, TestResult
from treewright.lean.session.lemma_errors import explained
from treewright.lean.session.process import LeanProcess, ProcessLost, hard_limit
from treewright.lean.session.protocol import (
    Audit,
    Begins,
    Declarations,
    Elaborate,
    Explore,
    Export,
    Focus,
    Free,
    Memory,
    MemoryReply,
    Open,
    Parse,
    Ping,
    R,
    Request,
    Reset,
    Start,
    StateReply,
    Survey,
    Tactic,
    Test,
    Version,
)

IMPORT_SECONDS = 60.0
TEST_SECONDS = 120.0
"""The limit of tests and explorations, which limit themselves by processor time."""
_PAGE = 2000


class HostSession:
    """A session on one process. It opens with imports and a preamble of commands."""

    def __init__(
        self,
        host: Host,
        imports: Sequence[str] = ("Init",),
        preamble: str = "",
        project: Project | None = None,
    ) -> None:
        self._host = host
        self._process = LeanProcess(host, project)
        try:
            self._open(tuple(imports), preamble)
        except BaseException:
            self.close()
            raise

    def _open(self, imports: tuple[str, ...], preamble: str) -> None:
        header = header_of(imports)
        self._prepare(header)
        opened = self._ask(Open(text=header), hard=IMPORT_SECONDS)
        if opened.env is None:
            raise missing_module(self._host, opened.messages)
        self.environment = opened.env
        version = self._ask(Version(), hard=10.0)
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
            commit=version.commit,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def info(self) -> SessionInfo:
        """Which Lean this is."""
        return self._info

    @property
    def host(self) -> Host:
        """The Lean that runs the session."""
        return self._host

    @property
    def alive(self) -> bool:
        """Whether the process runs; a session that was lost is never alive again."""
        return self._process.alive

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def heap_bytes(self) -> int:
        """Size of Lean's heap after the last request; it never shrinks."""
        return self._process.heap_bytes

    # -- proofs ---------------------------------------------------------------------------

    def start(self, statement: str, *, timeout: float = DEFAULT_STEP_SECONDS) -> StepResult:
        """Open a proof of a statement (a term, such as `∀ n : Nat, n + 0 = n`)."""
        return self._step(Start(env=self.environment, statement=statement), timeout)

    def start_declaration(
        self, source: str, *, timeout: float = DEFAULT_CHECK_SECONDS
    ) -> StepResult:
        """Open a proof at the first `sorry` of a declaration's source, or of a declaration by
        name."""
        if len(source.split()) == 1:
            named = Start(env=self.environment, declaration=source.strip())
            return self._step(named, timeout)
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
        without: Sequence[str] = (),
    ) -> StepResult:
        """Run a tactic, or several tactics on separate lines, on a state.

        A proof that uses a declaration of `without` is an error, also if an attribute brought the
        declaration in. `heartbeats` is a limit as `maxHeartbeats` has it; 0 leaves Lean's own.
        """
        request = Tactic(
            state=state_id(state), text=text, heartbeats=1000 * heartbeats, without=without
        )
        return self._step(request, timeout)

    def focus(self, state: ProofState | int, goals: Sequence[int]) -> StepResult:
        """Return the same state with some of its goals only, for a search of these goals alone."""
        return self._step(Focus(state=state_id(state), goals=goals), DEFAULT_STEP_SECONDS)

    def survey(self, state: ProofState | int, *, library: bool = False) -> Knowledge:
        """Return lemmas and facts for the first goal of a state; no tactic is run.

        Args:
            state: the state.
            library: whether lemmas of the library are returned, too.

        Raises:
            LeanError: the session is lost.
        """
        request = Survey(state=state_id(state), library=library)
        return self._ask(request, soft=DEFAULT_STEP_SECONDS).survey or NOTHING_KNOWN

    def test(
        self, state: ProofState | int, *, samples: int = 60, seed: int = 1, seconds: float = 1.0
    ) -> TestResult:
        """Try the first goal of a state on random values. Nothing is proved by that.

        Raises:
            LeanError: the session is lost.
        """
        if self._host.backend != "wasm":
            return TestResult("unknown", reason="only the bundled Lean tests goals")
        limit = round(seconds * 1000)
        request = Test(state=state_id(state), samples=samples, seed=seed, ms=limit)
        result = self._ask(request, soft=TEST_SECONDS).test
        return result or TestResult("unknown", reason="Lean did not finish the test")

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
        limit = round(seconds * 1000)
        at = state_id(state)
        request = Explore(state=at, size=size, samples=samples, seed=seed, ms=limit, most=most)
        return self._ask(request, soft=TEST_SECONDS).explored or Exploration((), 0, ())

    def free(self, states: Sequence[ProofState | int]) -> None:
        """Forget states."""
        self._ask(Free(states=[state_id(s) for s in states]), hard=30.0)

    # -- texts ----------------------------------------------------------------------------

    def check(
        self,
        source: str,
        *,
        sorries: bool = False,
        until: str = "",
        statements: bool = False,
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> CheckResult | Timeout | SessionLost:
        """Elaborate a whole text with its header, and give its declarations to the kernel.

        Args:
            source: the text.
            sorries: whether the result has every `sorry` with its states.
            until: a declaration: with `sorries`, a host may end behind the last declaration of this
                name that has a `sorry`.
            statements: whether a host may leave out proofs of theorems without a `sorry`. Errors in
                them are not found, and `unproved` is empty.
            timeout: seconds for Lean.
        """
        limit = until if until and sorries else None
        request = Elaborate(
            text=source,
            sorries=sorries,
            audit=not statements,
            until=limit,
            statements=statements,
        )
        result = self._elaborate(request, timeout)
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
        return self._elaborate(Elaborate(text=source, keep=keep, policy=rules), timeout)

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
        env = self.environment if env is None else env
        request = Elaborate(text=commands, env=env, keep=keep, sorries=sorries)
        return self._elaborate(request, timeout)

    def _elaborate(self, request: Elaborate, timeout: float) -> CheckResult | Timeout | SessionLost:
        try:
            if request.env is None:
                # The modules of the header are imported first, under a limit that is not the
                # text's: a text may loop where Lean cannot be interrupted.
                self._process.prepare(request.text)
                self._process.request(Open(text=request.text), hard=IMPORT_SECONDS)
            reply = self._process.request(request, soft=timeout, hard=hard_limit(timeout))
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

        Args:
            text: the text.
            category: its syntax category, such as `command` or `tactic`.
            after: the text in front, which is elaborated.
            name: a name; `known` of the result says whether the text in front declares it.

        Raises:
            LeanError: the text in front did not elaborate in time.
        """
        self._prepare(after)
        request = Parse(text=text, category=category, after=after, name=name)
        reply = self._ask(request, soft=DEFAULT_CHECK_SECONDS)
        if not reply.ok:
            raise LeanError(f"Lean could not parse the text: {reply.error}")
        if reply.stopped == "interrupted":
            raise LeanError("the text in front did not elaborate in time")
        return Parsed(reply.root, next(iter(reply.problem.splitlines()), ""), reply.known)

    def command_within(self, text: str, start: int, end: int) -> str:
        """Return the kind of a command that begins in bytes [start, end), or ''. It is not run."""
        self._prepare(text)
        reply = self._ask(Begins(text=text, start=start, end=end), soft=DEFAULT_CHECK_SECONDS)
        if not reply.ok:
            raise LeanError(f"Lean could not parse the text: {reply.error}")
        return reply.problem

    # -- environments ---------------------------------------------------------------------

    def audit(self, name: str, env: int | None = None) -> AuditReport | TacticError:
        """Return the axioms and constants that a declaration rests on."""
        env = self.environment if env is None else env
        reply = self._ask(Audit(env=env, name=name), hard=120.0)
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
        reply = self._ask(Export(env=env, whole=whole, stated=stated), soft=timeout)
        if not reply.ok:
            raise LeanError(f"what the text declares could not be exported: {reply.error}")
        return reply.data, reply.imported

    def declarations(
        self, prefix: str = "", module: str = "", *, types: bool = True, plain: bool = False
    ) -> Iterator[Declaration]:
        """Yield the imported declarations by name.

        Args:
            prefix: the beginning of the names.
            module: only declarations of this module and of those below it.
            types: whether the declarations have their types.
            plain: whether types have a quick, approximate form.
        """
        offset, total = 0, 1
        while offset < total:
            request = Declarations(
                env=self.environment,
                prefix=prefix,
                module=module,
                offset=offset,
                limit=_PAGE,
                types=types,
                plain=plain,
            )
            reply = self._ask(request, hard=120.0)
            yield from reply.items
            offset, total = offset + _PAGE, reply.total

    def free_environment(self, env: int) -> None:
        """Forget an environment that a check kept."""
        self._ask(Free(envs=[env]), hard=30.0)

    def reset(self) -> None:
        """Forget every proof state, and every kept environment except the session's own."""
        self._ask(Reset(env=self.environment), hard=30.0)

    def memory(self) -> MemoryReply:
        """Return the memory in use, and the numbers of states and environments."""
        return self._ask(Memory(), hard=10.0)

    # -- life -----------------------------------------------------------------------------

    def ping(self) -> float:
        """Send a request that does nothing, and return the milliseconds it took in Lean."""
        return self._ask(Ping(), hard=10.0).ms

    def cancel(self) -> None:
        """Interrupt the step that runs now, if there is one. The session can be used afterwards."""
        self._process.cancel()

    def close(self) -> None:
        """End the process."""
        self._process.kill()

    def _prepare(self, text: str) -> None:
        try:
            self._process.prepare(text)
        except ProcessLost as lost:
            raise SessionLostError(f"the Lean session is lost: {lost}") from lost

    def _ask(
        self, request: Request[R], *, soft: float | None = None, hard: float | None = None
    ) -> R:
        """Return a reply. A request has a limit for Lean, `soft`, or only one for the process."""
        limit = hard if hard is not None else hard_limit(soft or 0.0)
        try:
            return self._process.request(request, soft=soft, hard=limit)
        except ProcessLost as lost:
            raise SessionLostError(f"the Lean session is lost: {lost}") from lost

    def _step(self, request: Request[StateReply], timeout: float) -> StepResult:
        try:
            reply = self._process.request(request, soft=timeout, hard=hard_limit(timeout))
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


def state_id(state: ProofState | int) -> int:
    """Return the number by which the host knows a state."""
    return state if isinstance(state, int) else state.state


def missing_module(host: Host, messages: Sequence[Diagnostic]) -> MissingModule:
    """Return the error of a header that cannot be imported."""
    said = messages[0].text.splitlines() if messages else []
    return MissingModule(host.lacking(said[0] if said else "the header cannot be imported"))
