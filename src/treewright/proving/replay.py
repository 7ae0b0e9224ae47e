"""`treewright replay`: whether a run comes out the same again, and supports its results.

A live replay searches every iteration again with Lean and compares it with the trace, and gives
every recorded proof to the replay check again. An offline replay takes the answers of Lean from the
trace and repeats every decision: the goal to work on, the edges to add, the solved goals, the
result. Both report the first difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from treewright.lean.session.host_session import HostSession
from treewright.lean.session.inputs import GOAL_NAME
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict
from treewright.proving import layout
from treewright.proving.checker import (
    check_texts,
    statement_texts,
    with_scripts,
)
from treewright.proving.environment import Environment, LeanEnvironment
from treewright.proving.records import GoalResult, Iteration, PhaseKind, Refusal, TraceLine
from treewright.proving.run import last_results, read_result, scripts_path
from treewright.proving.search import (
    Runner,
    Stamp,
    exclusion,
    iteration_line,
    make_expander,
    make_runner,
)
from treewright.proving.settings import RunRecord, StatementTarget, Target, read_run
from treewright.proving.support import (
    Evidence,
    Repeated,
    find_disagreement,
    find_unsupported,
    find_wrong_order,
)
from treewright.proving.tactics.counterexamples import WithCounterexamples
from treewright.proving.tactics.source import TacticSource
from treewright.proving.targets import GoalSpec, read_goals
from treewright.proving.trace import (
    RecordedEnvironment,
    Recording,
    TraceError,
    first_difference,
    read_trace,
)
from treewright.search.andor.graph import Status
from treewright.search.andor.invariants import check

_PHASE_IN_WORDS: dict[PhaseKind, str] = {
    "prove": "",
    "negate": ", its negation",
    "retry": ", its retry",
}


@dataclass(frozen=True, slots=True)
class RecordedCheck:
    """The recorded answer of the replay check about a goal, and the text it was about."""

    goal: int
    status: str
    reason: str
    candidate: str
    detail: str


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """How much was compared, and the first difference; '' if there is none."""

    goals: int
    iterations: int
    difference: str = ""
    checks: tuple[RecordedCheck, ...] = ()


class _DifferenceFound(Exception):
    """The replay differs from the trace."""


def replay_offline(directory: Path, source: TacticSource) -> ReplayReport:
    """Check a trace against itself. The source is never asked: its answers are in the trace."""
    replay = _Replay(directory, source, uses_recorded_suggestions=True)
    return replay.report(replay.compare_offline)


def replay_live(
    directory: Path,
    sessions: Callable[[], HostSession],
    source: TacticSource,
    replayer: Replayer,
    *,
    recorded: bool = False,
) -> ReplayReport:
    """Search again, each phase in a fresh session, and check every proof again.

    Args:
        directory: The directory of the run.
        sessions: Starts a Lean session.
        source: Suggests tactics.
        replayer: Makes the replay checks.
        recorded: Whether suggestions are taken from the trace, because the source may answer
            differently now.

    Raises:
        Unchecked: The replay check gave no answer.
    """
    replay = _Replay(directory, source, uses_recorded_suggestions=recorded)
    replay.uses_recorded_suggestions |= replay.run.settings.sources.outside
    specs = {spec.number: spec for spec in read_goals(replay.run.target, sessions)}
    return replay.report(lambda: replay.compare_live(specs, sessions, replayer))


_Environments = Callable[[int, PhaseKind, Recording], Environment]


@dataclass(slots=True)
class _Replay:
    """One repetition of a run."""

    directory: Path
    source: TacticSource
    uses_recorded_suggestions: bool
    run: RunRecord = field(init=False)
    lines: list[TraceLine] = field(init=False)
    compared: int = field(default=0, init=False)
    refused: list[tuple[int, str]] = field(default_factory=list, init=False)
    """Proofs of negations that were found, and that the replay check refused at that time."""

    def __post_init__(self) -> None:
        self.run = read_run(self.directory / layout.RUN)
        self.lines = read_trace(self.directory / layout.TRACE)

    def report(self, compare: Callable[[], None]) -> ReplayReport:
        difference = ""
        try:
            compare()
        except _DifferenceFound as found:
            difference = str(found)
        checks = tuple(
            RecordedCheck(goal, result.status, answer.reason, answer.candidate, answer.detail)
            for goal, result in last_results(self.lines).items()
            if (answer := result.check) is not None
        )
        goals = len({line.goal for line in self.lines})
        return ReplayReport(goals, self.compared, difference, checks)

    def compare_offline(self) -> None:
        if problem := find_missing_iteration(self.lines) or find_wrong_order(self.lines):
            raise _DifferenceFound(problem)
        self._repeat_searches(lambda goal, phase, recording: RecordedEnvironment(recording, None))
        self._compare_result()

    def compare_live(
        self,
        specs: Mapping[int, GoalSpec],
        sessions: Callable[[], HostSession],
        replayer: Replayer,
    ) -> None:
        opened: list[LeanEnvironment] = []

        def open_environment(goal: int, phase: PhaseKind, recording: Recording) -> Environment:
            while opened:
                opened.pop().close()
            if goal not in specs:
                raise _DifferenceFound(f"goal {goal}: there is no such goal")
            spec = specs[goal]
            opening = spec.negation.opening if phase == "negate" else spec.opening
            seconds = self.run.settings.step_timeout
            without = recording.opened.without if recording.opened is not None else ()
            opened.append(LeanEnvironment(sessions, opening, step_seconds=seconds, without=without))
            return opened[-1]

        try:
            self._repeat_searches(open_environment)
        finally:
            while opened:
                opened.pop().close()
        self._compare_result()
        results = last_results(self.lines)
        difference = check_results_again(
            self.directory, self.run.target, specs, results, replayer
        ) or find_accepted_negation(specs, self.refused, replayer)
        if difference:
            raise _DifferenceFound(difference)

    def _repeat_searches(self, environments: _Environments) -> None:
        """Repeat every phase of every goal, and check each result against its phases."""
        results = last_results(self.lines)
        for goal in dict.fromkeys(line.goal for line in self.lines):
            proof = self._repeat_phase(goal, "prove", environments)
            negation = self._repeat_phase(goal, "negate", environments)
            self._check_retry_opening(goal)
            retry = self._repeat_phase(goal, "retry", environments)
            if (result := results.get(goal)) is None:
                continue
            evidence = Evidence(self.run, proof, negation, retry)
            if problem := find_unsupported(result, evidence):
                raise _DifferenceFound(f"goal {goal}: {problem}")
            if negation is not None and negation.solved and result.status != "false":
                self.refused.append((goal, negation.script()))

    def _check_retry_opening(self, goal: int) -> None:
        retry = Recording(goal, self.lines, "retry").opened
        if retry is None:
            return
        where = f"goal {goal}{_PHASE_IN_WORDS['retry']}"
        first = Recording(goal, self.lines).opened
        if first is None or (retry.statement, retry.root) != (first.statement, first.root):
            raise _DifferenceFound(f"{where}: it is another goal than was searched first")
        if not retry.without:
            raise _DifferenceFound(f"{where}: it names no lemma to search without")

    def _repeat_phase(
        self, goal: int, phase: PhaseKind, environments: _Environments
    ) -> Repeated | None:
        """Repeat a phase; None if it did not take place."""
        recording = Recording(goal, self.lines, phase)
        if recording.opened is None:
            return None
        where = f"goal {goal}{_PHASE_IN_WORDS[phase]}"
        settings = self.run.settings
        suggestions = (
            recording.suggestions
            if self.uses_recorded_suggestions
            else lambda node, round_number: None
        )
        source = self.source
        if phase == "negate":
            source = WithCounterexamples(source, self.run.target)
        try:
            environment = environments(goal, phase, recording)
            without = recording.opened.without
            expander = make_expander(settings, environment, source, suggestions, without=without)
            if expander.root.key != recording.opened.root.key:
                raise _DifferenceFound(f"{where}: the goal differs from the recorded one")
            expander.offer(recording.offered)
            runner = make_runner(settings, expander)
            refusals: list[Refusal] = []
            for line in recording.iterations:
                if difference := _compare_step(runner, line):
                    raise _DifferenceFound(f"{where}, iteration {line.iteration}: {difference}")
                self.compared += 1
                for refusal in recording.refusals_after(line.iteration):
                    _repeat_refusal(runner, refusal, refusals, where)
            finished = runner.finished
            runner.drain()
            check(runner.tree)
        except (TraceError, AssertionError) as error:
            raise _DifferenceFound(f"{where}: {error}") from None
        count, statement = len(recording.iterations), recording.opened.statement
        return Repeated(runner, count, finished, statement, refusals)

    def _compare_result(self) -> None:
        result = read_result(self.directory)
        if result is not None and (problem := find_disagreement(result, last_results(self.lines))):
            raise _DifferenceFound(problem)


def _compare_step(runner: Runner, line: Iteration) -> str:
    """Take a step and return how it differs from the recorded line; '' if it does not."""
    if runner.finished:
        return "the search is over before it"
    report = runner.step()
    stamp = Stamp(line.epoch, line.at, line.iteration, line.goal, line.phase, line.elapsed)
    found = iteration_line(report, runner.tree, runner.expander.attempts, stamp)
    return first_difference(line, found)


def _repeat_refusal(runner: Runner, refusal: Refusal, earlier: list[Refusal], where: str) -> None:
    """Exclude the edge that a refusal excluded, and add it to `earlier`."""
    if runner.tree.root.status is not Status.SOLVED:
        raise _DifferenceFound(f"{where}: a script was refused before there was one")
    edges, excluded = exclusion(runner.tree.root, earlier)
    if (edges, excluded.id) != (refusal.edges, refusal.excluded):
        raise _DifferenceFound(f"{where}: the edge that a refusal excludes is another one")
    if refusal.result.status != "rejected":
        raise _DifferenceFound(f"{where}: a script that was not rejected is excluded")
    runner.expander.exclude(excluded)
    earlier.append(refusal)


def find_missing_iteration(lines: list[TraceLine]) -> str:
    """Return the first gap in the count of the prove iterations; '' if there is none."""
    expected = 1
    for line in lines:
        if isinstance(line, Iteration) and line.phase == "prove":
            if line.iteration != expected:
                return f"iteration {expected} is missing: {line.iteration} stands in its place"
            expected += 1
    return ""


# -- recorded proofs, checked again -------------------------------------------------------


def check_results_again(
    directory: Path,
    target: Target,
    specs: Mapping[int, GoalSpec],
    results: Mapping[int, GoalResult],
    replayer: Replayer,
) -> str:
    """Return the first recorded script about which Lean now answers differently; '' if none.

    The copy of the file is compared too, if it is there. Raises Unchecked.
    """
    for goal, result in results.items():
        if not result.proof:
            continue
        if goal not in specs:
            return f"goal {goal}: there is no such goal"
        was_accepted = result.status in ("proved", "false")
        verdict = _check_again(target, specs, results, result, replayer)
        if verdict.proved != was_accepted:
            said = "is accepted" if verdict.proved else f"is refused ({verdict.reason})"
            return f"goal {goal}: the verdict is {result.status}, but its script {said} now"
        reason = result.check.reason if result.check is not None else verdict.reason
        if isinstance(target, StatementTarget) and verdict.reason != reason:
            return f"goal {goal}: the replay check said {reason!r}, now {verdict.reason!r}"
        if was_accepted and verdict.axioms != result.axioms:
            return f"goal {goal}: it rests on other axioms: {', '.join(verdict.axioms) or 'none'}"
    path = scripts_path(directory, target)
    if path is None or isinstance(target, StatementTarget) or not path.exists():
        return ""
    text = _text_with(target.source, specs, _in_file(results)).encode()
    return "" if path.read_bytes() == text else f"{path.name} is not what was proved"


def find_accepted_negation(
    specs: Mapping[int, GoalSpec], scripts: list[tuple[int, str]], replayer: Replayer
) -> str:
    """Return the first goal with a proved negation that is not called false; '' if none."""
    for goal, script in scripts:
        negation = specs[goal].negation
        texts = (negation.original, negation.with_proof(script))
        if check_texts(replayer, *texts, [negation.declaration]).proved:
            return f"goal {goal}: the verdict is not `false`, but its negation is proved"
    return ""


def _check_again(
    target: Target,
    specs: Mapping[int, GoalSpec],
    results: Mapping[int, GoalResult],
    result: GoalResult,
    replayer: Replayer,
) -> Verdict:
    spec = specs[result.goal]
    if result.status == "false":
        negation = spec.negation
        texts, name = (negation.original, negation.with_proof(result.proof)), negation.declaration
    elif isinstance(target, StatementTarget):
        texts, name = statement_texts(target, result.proof), GOAL_NAME
    else:
        assert spec.sorry is not None
        text = _text_with(target.source, specs, {**_in_file(results), result.goal: result})
        texts, name = (target.source, text), spec.sorry.declaration
    return check_texts(replayer, *texts, [name])


def _in_file(results: Mapping[int, GoalResult]) -> dict[int, GoalResult]:
    """Return the results with a script in the copy of the file."""
    return {goal: r for goal, r in results.items() if r.status in ("proved", "partial")}


def _text_with(
    source: str, specs: Mapping[int, GoalSpec], results: Mapping[int, GoalResult]
) -> str:
    pairs = [(specs[goal].sorry, r.proof) for goal, r in results.items() if goal in specs]
    return with_scripts(source, [(sorry, proof) for sorry, proof in pairs if sorry is not None])
