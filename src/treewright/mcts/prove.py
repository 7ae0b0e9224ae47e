"""Proving the goals of a run, one after the other: search, script, replay check, verdict."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from treewright.kernel import atomic
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import TreewrightError
from treewright.lean.replay import Replayer
from treewright.lean.session import LeanError, LeanSession
from treewright.mcts import extraction
from treewright.mcts.certifying import write_certificate
from treewright.mcts.environment import GoalError, LeanEnvironment
from treewright.mcts.judging import Judge, Judgement
from treewright.mcts.partial import best_partial
from treewright.mcts.presentation import present
from treewright.mcts.recording import FedEnvironment, Recording
from treewright.mcts.records import Iteration, VerdictReached
from treewright.mcts.refutation import NegationSink, negation_limits, negation_recording
from treewright.mcts.report import write_report
from treewright.mcts.run import (
    GoalResult,
    ProofRun,
    RunResult,
    copy_of,
    goal_result,
    write_result,
)
from treewright.mcts.runners import make_expander, make_runner
from treewright.mcts.search import Limits, Runner, Search, Stop
from treewright.mcts.settings import RunRecord, StatementTarget
from treewright.mcts.sources.base import TacticSource, stop_when
from treewright.mcts.stopping import cancelled_when
from treewright.mcts.targets import GoalSpec, Opening, file_goals, statement_goal
from treewright.mcts.verification import Unchecked
from treewright.mcts.witnesses import WithWitnesses
from treewright.search.andor.graph import Graph

MINIMISING_SECONDS = 30.0
CHECK_PATIENCE_SECONDS = 5.0  # how long a replay check may go on when somebody asks to stop

SessionFactory = Callable[[], LeanSession]


@dataclass(slots=True)
class Observer:
    """Told about progress; the defaults say nothing."""

    goal: Callable[[GoalSpec, int], None] = lambda spec, total: None
    iteration: Callable[[Iteration, Graph], None] = lambda line, tree: None
    verdict: Callable[[GoalSpec, VerdictReached], None] = lambda spec, line: None
    negation: Callable[[GoalSpec], None] = lambda spec: None
    fault: Callable[[GoalSpec, str], None] = lambda spec, why: None
    run: Callable[[RunRecord, Path], None] = lambda record, directory: None


@dataclass(slots=True)
class Prover:
    """Everything that proving a run needs. `sessions` starts a session; `first` is one at hand.

    With `keep` the last session stays open, as `first`, for the prover of another run.
    """

    run: ProofRun
    sessions: SessionFactory
    replayer: Replayer
    source: TacticSource
    stop_asked: Callable[[], bool] = lambda: False
    observer: Observer = field(default_factory=Observer)
    first: LeanSession | None = None
    keep: bool = False
    _verdicts: dict[int, VerdictReached] = field(default_factory=dict, init=False)
    _faults: dict[int, str] = field(default_factory=dict, init=False)
    _iteration: int = field(default=0, init=False)

    def prove(self) -> RunResult:
        """All goals that have no verdict yet. Interrupted, it leaves the rest for `--resume`.

        So it leaves goals whose check came to no answer: a fault is not a verdict. What came of it
        is written down: `result.json` and the report.
        """
        self._verdicts = self.run.verdicts()
        try:
            specs = self._specs()
            judge = Judge(self.run.record.target, self.replayer, specs)
            complete = all(self._goal(spec, judge) for spec in specs)
            if complete:
                self._settle_partials(judge)
                complete = not self._faults
        finally:
            if self.first is not None and not self.keep:
                self.first.close()
        result = self._result(judge, complete)
        write_result(self.run.directory, result)
        write_report(self.run.directory)
        return result

    # -- one goal -------------------------------------------------------------------------

    def _specs(self) -> list[GoalSpec]:
        target = self.run.record.target
        if isinstance(target, StatementTarget):
            return [statement_goal(target)]
        session = self.first = self._session()
        try:
            with cancelled_when(self.stop_asked, session.cancel):
                return file_goals(target, session)
        except TreewrightError:
            if self.stop_asked():
                raise TreewrightError(f"stopped while {target.path} was read") from None
            raise

    def _goal(self, spec: GoalSpec, judge: Judge) -> bool:
        """False if it was interrupted before there was a verdict."""
        recording = Recording(spec.number, self.run.lines)
        known = self._verdicts.get(spec.number)
        if known is not None:
            self._iteration += len(recording.iterations)
            if known.proof and known.status in ("proved", "partial"):
                judge.remember(spec, known.proof)
            self.observer.verdict(spec, known)
            return True
        self.observer.goal(spec, len(judge.specs))
        settings = self.run.record.settings
        search = Search(
            spec.number,
            spec.name,
            spec.statement,
            Limits(settings.simulations, settings.time_limit),
            self.run.writer,
            recording,
            self._iteration,
            self.stop_asked,
            self.observer.iteration,
        )
        try:
            verdict = self._pursue(search, spec, judge)
        except Unchecked as fault:
            self._fault(spec, fault)
            return True
        finally:
            self._iteration = search.iteration
        if verdict is not None:
            self._reach(spec, verdict)
        return verdict is not None

    def _pursue(self, search: Search, spec: GoalSpec, judge: Judge) -> VerdictReached | None:
        with self._environment(spec.opening) as environment:
            try:
                runner, stop = self._explore(search, environment, self.source)
            except GoalError as error:
                return self._verdict(search, Judgement("ill_typed", str(error)), "ill_typed")
            if stop == "solved":
                return self._solved(search, spec, judge, runner, environment)
            if stop == "interrupted":
                return None
            partial = best_partial(runner, environment.takes, judge.indentation(spec))
        if self.run.record.settings.refute and not self._searched_in_vain(spec, judge):
            verdict = self._refute(search, spec, judge, stop)
        else:
            verdict = self._verdict(search, Judgement("unproved", _WHY[stop]), stop)
        if verdict is None or verdict.status != "unproved":
            return verdict
        return msgspec.structs.replace(verdict, partial=partial)

    def _explore(
        self, search: Search, environment: LeanEnvironment, source: TacticSource
    ) -> tuple[Runner, Stop]:
        settings = self.run.record.settings
        recording = search.recording
        fed = FedEnvironment(recording, environment)
        expander = make_expander(settings, fed, source, recording.suggestions)
        search.open(expander)
        runner = make_runner(settings, expander)
        stop_when(source, search.is_over)
        try:
            return runner, search.run(runner)
        finally:
            runner.drain()

    def _solved(
        self,
        search: Search,
        spec: GoalSpec,
        judge: Judge,
        runner: Runner,
        environment: LeanEnvironment,
    ) -> VerdictReached:
        """The script as people write it, if the replay check takes that, else as it was found."""
        closes = self._until_tired(environment.closes)
        step = extraction.extract(runner.tree.root, goals=runner.expander.goals)
        places = extraction.superfluous(step, closes)
        shorter = extraction.without(step, places)
        plain = extraction.render(shorter)
        shown = present(_shortest(runner, shorter, closes), closes, judge.indentation(spec))
        forms = {shown: places, plain: places, extraction.render(step): ()}
        judgement, script = Judgement("rejected"), plain
        with cancelled_when(self.stop_asked, self.replayer.close, CHECK_PATIENCE_SECONDS):
            for script in forms:
                judgement = judge.script(spec, script, environment.accepts)
                if judgement.status != "rejected":
                    break
        found = plain if script == shown != plain else ""
        return self._verdict(
            search, judgement, "solved", script, left_out=forms[script], found=found
        )

    def _searched_in_vain(self, spec: GoalSpec, judge: Judge) -> bool:
        """Whether the negation of the declaration was searched for another of its sorries."""
        if spec.sorry is None:
            return False
        name = spec.sorry.declaration
        family = (s.number for s in judge.specs if s.sorry and s.sorry.declaration == name)
        verdicts = (self._verdicts.get(number) for number in family)
        return any(v is not None and v.negation not in ("", "solved") for v in verdicts)

    def _refute(
        self, search: Search, spec: GoalSpec, judge: Judge, stop: Stop
    ) -> VerdictReached | None:
        """The search for the negation of a goal that was not proved; None if interrupted."""
        self.observer.negation(spec)
        limits = negation_limits(self.run.record.settings)
        looking = Search(
            spec.number,
            spec.name,
            spec.negation.statement,
            limits,
            NegationSink(self.run.writer, limits.simulations),
            negation_recording(spec.number, self.run.lines),
            stop_asked=self.stop_asked,
        )
        try:
            with self._environment(spec.negation.opening) as environment:
                source = WithWitnesses(self.source, self.run.record.target)
                runner, ended = self._explore(looking, environment, source)
        except GoalError:
            if spec.sorry is None:
                raise
            return self._verdict(search, Judgement("unproved", _WHY[stop]), stop)
        except LeanError as error:
            raise Unchecked(f"the search for the negation: {error}") from None
        if ended == "interrupted":
            return None
        detail = f"{_WHY[stop]}; its negation was not proved either"
        if ended == "solved":
            script = extraction.render(extraction.extract(runner.tree.root))
            judgement = judge.refutation(spec, script)
            if judgement.status == "false":
                return self._verdict(search, judgement, stop, script, negation=ended)
            refused = replace(judgement, detail=f"{_WHY[stop]}; {judgement.detail}")
            return self._verdict(search, refused, stop, negation=ended)
        return self._verdict(search, Judgement("unproved", detail), stop, negation=ended)

    def _until_tired(self, holds: Callable[[str], bool]) -> Callable[[str], bool]:
        """Making a script shorter is worth some time, and ends when somebody asks to stop."""
        deadline = time.monotonic() + MINIMISING_SECONDS
        return lambda text: not self.stop_asked() and time.monotonic() < deadline and holds(text)

    # -- verdicts -------------------------------------------------------------------------

    def _settle_partials(self, judge: Judge) -> None:
        """What was waiting for other sorries is checked again when all have been searched."""
        for spec in judge.specs:
            earlier = self._verdicts.get(spec.number)
            if earlier is None or earlier.status != "partial":
                continue
            try:
                judgement = judge.settles(spec)
            except Unchecked as fault:
                self._fault(spec, fault)
                continue
            if judgement is not None:
                self._reach(spec, self._upgrade(earlier, judgement))

    def _reach(self, spec: GoalSpec, verdict: VerdictReached) -> None:
        self._verdicts[spec.number] = verdict
        self.run.writer.append([verdict], sync=True)
        self.observer.verdict(spec, verdict)

    def _fault(self, spec: GoalSpec, fault: Unchecked) -> None:
        self._faults[spec.number] = str(fault)
        self.observer.fault(spec, str(fault))

    def _verdict(
        self,
        search: Search,
        judgement: Judgement,
        stop: str,
        proof: str = "",
        *,
        left_out: tuple[extraction.Place, ...] = (),
        found: str = "",
        negation: str = "",
    ) -> VerdictReached:
        return VerdictReached(
            epoch=self.run.writer.epoch,
            at=timestamp(),
            goal=search.goal,
            status=judgement.status,
            stop=stop,
            detail=judgement.detail,
            proof=proof,
            axioms=judgement.axioms,
            iterations=search.iteration - self._iteration,
            elapsed=round(search.elapsed, 3),
            left_out=left_out,
            found=found,
            negation=negation,
            check=judgement.check,
        )

    def _upgrade(self, earlier: VerdictReached, judgement: Judgement) -> VerdictReached:
        return msgspec.structs.replace(
            earlier,
            epoch=self.run.writer.epoch,
            at=timestamp(),
            status="proved",
            detail="",
            axioms=judgement.axioms,
            check=judgement.check,
        )

    # -- sessions and results -------------------------------------------------------------

    def _session(self) -> LeanSession:
        spare, self.first = self.first, None
        return spare if spare is not None and spare.alive else self.sessions()

    @contextlib.contextmanager
    def _environment(self, opening: Opening) -> Iterator[LeanEnvironment]:
        """Keeps the session for the next goal, emptied, unless something went wrong."""
        environment = LeanEnvironment(
            self._session, opening, step_seconds=self.run.record.settings.step_timeout
        )
        try:
            yield environment
        except BaseException:
            environment.close()
            raise
        self.first = environment.release()

    def _result(self, judge: Judge, complete: bool) -> RunResult:
        record = self.run.record
        found = (self._goal_result(spec) for spec in judge.specs)
        goals = tuple(goal for goal in found if goal is not None)
        return RunResult(
            run_id=record.run_id,
            directory=str(self.run.directory),
            mode=record.mode,
            proved=sum(goal.status == "proved" for goal in goals),
            total=len(judge.specs),
            complete=complete,
            file=self._write_copy(judge.text()),
            goals=goals,
            certificate=self._certify(judge),
        )

    def _certify(self, judge: Judge) -> str | None:
        """Beside the proofs, if there are any; a check without an answer leaves none behind."""
        proved = [s for s in judge.specs if self._status(s) == "proved"]
        if not proved:
            return None
        text = judge.text() or self._verdicts[proved[0].number].proof
        declarations = dict.fromkeys(s.sorry.declaration for s in proved if s.sorry is not None)
        try:
            return str(
                write_certificate(
                    self.run.directory, judge.check, self.run.record.target, text, [*declarations]
                )
            )
        except (Unchecked, LeanError) as fault:
            self.observer.fault(proved[0], f"no certificate: {fault}")
            return None

    def _status(self, spec: GoalSpec) -> str:
        line = self._verdicts.get(spec.number)
        return line.status if line is not None else ""

    def _goal_result(self, spec: GoalSpec) -> GoalResult | None:
        line = self._verdicts.get(spec.number)
        if line is not None:
            return goal_result(spec.name, line)
        if spec.number not in self._faults:
            return None
        return GoalResult(spec.number, spec.name, "unchecked", "", self._faults[spec.number])

    def _write_copy(self, text: str | None) -> str | None:
        """A copy of the file with every script that passed, or closed its `sorry`."""
        path = copy_of(self.run.directory, self.run.record.target)
        if text is None or path is None:
            return None
        atomic.make_directory(path.parent)
        atomic.write_bytes(path, text.encode())
        return str(path)


_WHY: dict[Stop, str] = {
    "exhausted": "every tactic that was proposed has been tried",
    "simulations": "the limit of simulations was reached",
    "time": "the time limit was reached",
    "abort": "no agent could go on",
}


def _shortest(
    runner: Runner, found: extraction.Step, closes: Callable[[str], bool]
) -> extraction.Step:
    """The shortest way through what was searched, if it is shorter than what was found."""
    root = runner.tree.root
    other = extraction.extract(root, extraction.shortest(root), runner.expander.goals)
    if extraction.render(other) == extraction.render(found):
        return found
    other = extraction.without(other, extraction.superfluous(other, closes))
    return min(found, other, key=lambda step: extraction.render(step).count("\n"))
