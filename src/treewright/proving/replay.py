"""`treewright replay`: does a run come out the same again, and does it support its verdicts?

Live, every iteration is searched again with Lean and compared with the trace, and every recorded
proof is put to the replay check again. Offline, Lean's answers are taken from the trace and
everything that was decided is decided again: where to go, what to add, what is solved, what may be
said of it. Both report the first difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treewright.lean.session.interface import LeanSession
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict
from treewright.proving import layout
from treewright.proving.checker import (
    verify_file,
    verify_refutation,
    verify_statement,
    with_proofs,
)
from treewright.proving.environment import Environment
from treewright.proving.lean_environment import LeanEnvironment
from treewright.proving.once_more import again_opened, again_recording
from treewright.proving.records import GoalOpened, Iteration, TraceLine, VerdictReached
from treewright.proving.refutation import negation_recording, order_of_turns
from treewright.proving.run import copy_of, read_result, verdicts
from treewright.proving.runners import make_expander, make_runner
from treewright.proving.search import Runner, Stamp, record
from treewright.proving.settings import RunRecord, StatementTarget, Target, read_run
from treewright.proving.support import Evidence, Searched, stale, unsupported
from treewright.proving.tactics.counterexamples import WithWitnesses
from treewright.proving.tactics.source import TacticSource
from treewright.proving.targets import GoalSpec, Opening, goals_of
from treewright.proving.trace import (
    FedEnvironment,
    Recording,
    TraceError,
    first_difference,
    read_trace,
)
from treewright.search.andor.invariants import check


@dataclass(frozen=True, slots=True)
class Check:
    """What the replay check said when the verdict on a goal was reached, and about which text."""

    goal: int
    status: str
    reason: str
    candidate: str
    detail: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """How much was compared, and the first difference, if there is one."""

    goals: int
    iterations: int
    difference: str = ""
    checks: tuple[Check, ...] = ()


class _Differs(Exception):
    """Something came out differently."""


def replay_offline(directory: Path, source: TacticSource) -> Replayed:
    """Checks a trace against itself. The source is never asked: its answers are in the trace."""
    run, lines = _read(directory)
    replay = _Replay(run, lines, source, recorded_suggestions=True)

    def environment(_goal: int, recording: Recording, _negated: bool) -> Environment:
        return FedEnvironment(recording, None)

    return replay.report(lambda: replay.offline(directory, environment))


def replay_live(
    directory: Path,
    sessions: Callable[[], LeanSession],
    source: TacticSource,
    replayer: Replayer,
    *,
    recorded: bool = False,
) -> Replayed:
    """Searches again, each goal in a fresh session, and checks every proof again.

    `recorded`: what sources said is taken from the trace, since it cannot be asked again.
    """
    run, lines = _read(directory)
    specs = {spec.number: spec for spec in goals_of(run.target, sessions)}
    recorded = recorded or run.settings.sources.outside
    replay = _Replay(run, lines, source, recorded_suggestions=recorded)
    environments: list[LeanEnvironment] = []

    def opening(goal: int, negated: bool) -> Opening:
        if goal not in specs:
            raise _Differs(f"goal {goal}: there is no such goal")
        return specs[goal].negation.opening if negated else specs[goal].opening

    def environment(goal: int, _recording: Recording, negated: bool) -> Environment:
        while environments:
            environments.pop().close()
        seconds = run.settings.step_timeout
        environments.append(LeanEnvironment(sessions, opening(goal, negated), step_seconds=seconds))
        return environments[-1]

    def everything() -> None:
        replay.searches(environment)
        replay.result(directory)
        found = recheck(directory, run.target, specs, verdicts(lines), replayer)
        if found := found or still_refused(specs, replay.refused, replayer):
            raise _Differs(found)

    try:
        return replay.report(everything)
    finally:
        while environments:
            environments.pop().close()


def _read(directory: Path) -> tuple[RunRecord, list[TraceLine]]:
    return read_run(directory / layout.RUN), read_trace(directory / layout.TRACE)


_Environments = Callable[[int, Recording, bool], Environment]
"""The environment of a goal, or of its negation."""


@dataclass(slots=True)
class _Replay:
    """One repetition: what is compared, and how far it got."""

    run: RunRecord
    lines: Sequence[TraceLine]
    source: TacticSource
    recorded_suggestions: bool
    compared: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Proofs of negations that were found, and that the replay check is said to have refused."""

    @property
    def goals(self) -> list[int]:
        return list(dict.fromkeys(line.goal for line in self.lines))

    def report(self, everything: Callable[[], None]) -> Replayed:
        difference = ""
        try:
            everything()
        except _Differs as found:
            difference = str(found)
        checks = tuple(
            Check(goal, verdict.status, found.reason, found.candidate, found.detail)
            for goal, verdict in verdicts(self.lines).items()
            if (found := verdict.check) is not None
        )
        return Replayed(len(self.goals), self.compared, difference, checks)

    def offline(self, directory: Path, environment: _Environments) -> None:
        if problem := _order(self.lines) or order_of_turns(self.lines):
            raise _Differs(problem)
        self.searches(environment)
        self.result(directory)

    def searches(self, environment: _Environments) -> None:
        reached = verdicts(self.lines)
        for goal in self.goals:
            first = Recording(goal, self.lines)
            proof = self._search(goal, first, environment, False)
            recording = negation_recording(goal, self.lines)
            negation = self._search(goal, recording, environment, True)
            again = self._search_again(goal, first.opened, environment)
            if goal not in reached:
                continue
            evidence = Evidence(self.run, proof, negation, again)
            if problem := unsupported(reached[goal], evidence):
                raise _Differs(f"goal {goal}: {problem}")
            if negation is not None and negation.solved and reached[goal].status != "false":
                self.refused.append((goal, negation.script()))

    def result(self, directory: Path) -> None:
        result = read_result(directory)
        if result is not None and (problem := stale(result, verdicts(self.lines))):
            raise _Differs(problem)

    def _search_again(
        self, goal: int, first: GoalOpened | None, environment: _Environments
    ) -> Searched | None:
        opened = again_opened(goal, self.lines)
        if opened is None:
            return None
        if first is None or (opened.statement, opened.root) != (first.statement, first.root):
            raise _Differs(f"goal {goal}, once more: it is another one than was searched first")
        if not opened.without:
            raise _Differs(f"goal {goal}, once more: there is nothing that it was searched without")
        recording = again_recording(goal, self.lines)
        return self._search(goal, recording, environment, False, opened.without)

    def _search(
        self,
        goal: int,
        recording: Recording,
        environment: _Environments,
        negated: bool,
        without: Sequence[str] = (),
    ) -> Searched | None:
        """Repeats a search; None if there was none (ill-typed, or nothing to refute)."""
        if recording.opened is None:
            return None
        where = f"goal {goal}{', its negation' if negated else ', once more' if without else ''}"
        settings = self.run.settings
        suggestions = recording.suggestions if self.recorded_suggestions else _nothing
        try:
            around = environment(goal, recording, negated)
            source = WithWitnesses(self.source, self.run.target) if negated else self.source
            expander = make_expander(settings, around, source, suggestions, without=without)
            if expander.root.key != recording.opened.root.key:
                raise _Differs(f"{where}: it is another one now")
            runner = make_runner(settings, expander)
            for line in recording.iterations:
                if difference := _again(runner, line):
                    raise _Differs(f"{where}, iteration {line.iteration}: {difference}")
                self.compared += 1
            finished = runner.finished
            runner.drain()
            check(runner.tree)
        except (TraceError, AssertionError) as error:
            raise _Differs(f"{where}: {error}") from None
        return Searched(runner, len(recording.iterations), finished, recording.opened.statement)


def _nothing(_node: int, _round_number: int) -> None:
    return None


def _again(runner: Runner, line: Iteration) -> str:
    if runner.finished:
        return "the search is over before it"
    turn = runner.step()
    stamp = Stamp(line.epoch, line.at, line.iteration, line.goal, line.elapsed)
    return first_difference(line, record(turn, runner.tree, runner.expander.attempts, stamp))


def _order(lines: Sequence[TraceLine]) -> str:
    expected = 1
    for line in lines:
        if isinstance(line, Iteration):
            if line.iteration != expected:
                return f"iteration {expected} is missing: {line.iteration} stands in its place"
            expected += 1
    return ""


def recheck(
    directory: Path,
    target: Target,
    specs: Mapping[int, GoalSpec],
    verdicts: Mapping[int, VerdictReached],
    replayer: Replayer,
) -> str:
    """The first recorded script of which Lean says something else now; '' if there is none.

    Raises Unchecked where Lean does not answer.
    """
    for goal, verdict in verdicts.items():
        if not verdict.proof:
            continue
        if goal not in specs:
            return f"goal {goal}: there is no such goal"
        accepted = verdict.status in ("proved", "false")
        answer = _ask(target, specs, verdicts, verdict, replayer)
        if answer.proved != accepted:
            said = "is accepted" if answer.proved else f"is refused ({answer.reason})"
            return f"goal {goal}: the verdict is {verdict.status}, but its script {said} now"
        said_then = verdict.check.reason if verdict.check is not None else answer.reason
        if isinstance(target, StatementTarget) and answer.reason != said_then:
            return f"goal {goal}: the replay check said {said_then!r}, now {answer.reason!r}"
        if accepted and answer.axioms != verdict.axioms:
            return f"goal {goal}: it rests on other axioms: {', '.join(answer.axioms) or 'none'}"
    return _wrong_copy(directory, target, specs, verdicts)


def still_refused(
    specs: Mapping[int, GoalSpec], scripts: Sequence[tuple[int, str]], replayer: Replayer
) -> str:
    """The first proof of a negation that is accepted although its goal is not called false."""
    for goal, script in scripts:
        if verify_refutation(replayer, specs[goal].negation, script).proved:
            return f"goal {goal}: the verdict is not `false`, but its negation is proved"
    return ""


def _ask(
    target: Target,
    specs: Mapping[int, GoalSpec],
    verdicts: Mapping[int, VerdictReached],
    verdict: VerdictReached,
    replayer: Replayer,
) -> Verdict:
    if verdict.status == "false":
        return verify_refutation(replayer, specs[verdict.goal].negation, verdict.proof)
    if isinstance(target, StatementTarget):
        return verify_statement(replayer, target, verdict.proof)
    together = {v.goal: v for v in _in_file(verdicts)} | {verdict.goal: verdict}
    text = _file_text(target.source, specs, together)
    sorry = specs[verdict.goal].sorry
    assert sorry is not None
    return verify_file(replayer, target.source, text, sorry.declaration)


def _in_file(verdicts: Mapping[int, VerdictReached]) -> Iterator[VerdictReached]:
    return (v for v in verdicts.values() if v.status in ("proved", "partial"))


def _file_text(
    source: str, specs: Mapping[int, GoalSpec], verdicts: Mapping[int, VerdictReached]
) -> str:
    pairs = [(specs[goal].sorry, v.proof) for goal, v in verdicts.items() if goal in specs]
    return with_proofs(source, [(s, proof) for s, proof in pairs if s is not None])


def _wrong_copy(
    directory: Path,
    target: Target,
    specs: Mapping[int, GoalSpec],
    verdicts: Mapping[int, VerdictReached],
) -> str:
    """The copy of the file is derived, and may be missing; it must not say something else."""
    path = copy_of(directory, target)
    if path is None or isinstance(target, StatementTarget) or not path.exists():
        return ""
    proofs = {v.goal: v for v in _in_file(verdicts)}
    text = _file_text(target.source, specs, proofs).encode()
    return "" if path.read_bytes() == text else f"{path.name} is not what was proved"
