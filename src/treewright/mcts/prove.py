"""Proving the goals of a run, one after the other: search, script, replay check, verdict."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from treewright.kernel import atomic
from treewright.kernel.clock import timestamp
from treewright.lean.replay import Replayer, Verdict
from treewright.lean.session import LeanError, LeanSession
from treewright.lean.sorries import Sorry
from treewright.mcts import extraction
from treewright.mcts.environment import GoalError, LeanEnvironment
from treewright.mcts.expansion import Expander
from treewright.mcts.prooftree import ProofTree
from treewright.mcts.recording import FedEnvironment, Recording
from treewright.mcts.records import GoalStatus, Iteration, VerdictReached
from treewright.mcts.refutation import refute
from treewright.mcts.run import GoalResult, ProofRun, RunResult, goal_result, write_result
from treewright.mcts.runners import make_runner
from treewright.mcts.search import Limits, Search, Stop
from treewright.mcts.settings import FileTarget, StatementTarget
from treewright.mcts.sources.base import TacticSource
from treewright.mcts.targets import GoalSpec, file_goals, statement_goal
from treewright.mcts.values import estimate
from treewright.mcts.verification import Unchecked, verify_file, verify_statement, with_proofs

MINIMISING_SECONDS = 30.0

SessionFactory = Callable[[], LeanSession]


@dataclass(slots=True)
class Observer:
    """Told about progress; the defaults say nothing."""

    goal: Callable[[GoalSpec, int], None] = lambda spec, total: None
    iteration: Callable[[Iteration, ProofTree], None] = lambda line, tree: None
    verdict: Callable[[GoalSpec, VerdictReached], None] = lambda spec, line: None
    fault: Callable[[GoalSpec, str], None] = lambda spec, why: None


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
    _proofs: dict[int, tuple[Sorry, str]] = field(default_factory=dict, init=False)
    _verdicts: dict[int, VerdictReached] = field(default_factory=dict, init=False)
    _faults: dict[int, str] = field(default_factory=dict, init=False)
    _iteration: int = field(default=0, init=False)

    def prove(self) -> RunResult:
        """All goals that have no verdict yet. Interrupted, it leaves the rest for `--resume`.

        So it leaves goals whose check came to no answer: a fault is not a verdict.
        """
        self._verdicts = self.run.verdicts()
        try:
            specs = self._specs()
            complete = all(self._goal(spec, specs) for spec in specs)
            if complete:
                self._settle_partials(specs)
                complete = not self._faults
        finally:
            if self.first is not None and not self.keep:
                self.first.close()
        result = self._result(specs, complete)
        write_result(self.run.directory, result)
        return result

    # -- one goal -------------------------------------------------------------------------

    def _specs(self) -> list[GoalSpec]:
        target = self.run.record.target
        if isinstance(target, StatementTarget):
            return [statement_goal(target)]
        self.first = self._session()
        return file_goals(target, self.first)

    def _goal(self, spec: GoalSpec, specs: list[GoalSpec]) -> bool:
        """False if it was interrupted before there was a verdict."""
        recording = Recording(spec.number, self.run.lines)
        known = self._verdicts.get(spec.number)
        if known is not None:
            self._iteration += len(recording.iterations)
            if spec.sorry is not None and known.proof and known.status in ("proved", "partial"):
                self._proofs[spec.number] = (spec.sorry, known.proof)
            self.observer.verdict(spec, known)
            return True
        self.observer.goal(spec, len(specs))
        search = Search(
            spec.number,
            spec.name,
            spec.statement,
            Limits(self.run.record.settings.simulations, self.run.record.settings.time_limit),
            self.run.writer,
            recording,
            self._iteration,
            self.stop_asked,
            self.observer.iteration,
        )
        try:
            with self._environment(spec) as environment:
                verdict = self._search(search, spec, specs, environment, recording)
        except Unchecked as fault:
            self._proofs.pop(spec.number, None)
            self._fault(spec, fault)
            return True
        finally:
            self._iteration = search.iteration
        if verdict is not None:
            self._reach(spec, verdict)
        return verdict is not None

    def _fault(self, spec: GoalSpec, fault: Unchecked) -> None:
        self._faults[spec.number] = str(fault)
        self.observer.fault(spec, str(fault))

    def _search(
        self,
        search: Search,
        spec: GoalSpec,
        specs: list[GoalSpec],
        environment: LeanEnvironment,
        recording: Recording,
    ) -> VerdictReached | None:
        settings = self.run.record.settings
        try:
            expander = Expander(
                FedEnvironment(recording, environment),
                self.source,
                estimate,
                batch=settings.batch,
                discount=settings.policy.discount,
                recorded=recording.suggestions,
            )
        except GoalError as error:
            return self._one(search, spec, "ill_typed", "ill_typed", str(error))
        search.open(expander)
        runner = make_runner(settings, expander)
        try:
            stop = search.run(runner)
        finally:
            runner.drain()
        if stop == "interrupted":
            return None
        if stop != "solved":
            return self._unsolved(search, spec, stop)
        step = extraction.extract(runner.tree.root)
        shorter = extraction.minimise(step, self._until_tired(environment.closes))
        verdict = self._check(search, spec, specs, stop, extraction.render(shorter), environment)
        if verdict.status == "rejected" and shorter != step:
            script = extraction.render(step)
            verdict = self._check(search, spec, specs, stop, script, environment)
        return verdict

    def _until_tired(self, holds: Callable[[str], bool]) -> Callable[[str], bool]:
        """Making a script shorter is worth some time, and ends when somebody asks to stop."""
        deadline = time.monotonic() + MINIMISING_SECONDS
        return lambda text: not self.stop_asked() and time.monotonic() < deadline and holds(text)

    # -- verdicts -------------------------------------------------------------------------

    def _unsolved(self, search: Search, spec: GoalSpec, stop: Stop) -> VerdictReached | None:
        settings = self.run.record.settings
        if settings.refute and spec.closed_statement is not None:
            disproof = refute(
                spec.closed_statement,
                self._session,
                self.source,
                settings,
                self.replayer,
                self.stop_asked,
            )
            if disproof is not None:
                detail = "its negation is proved"
                return self._one(search, spec, "false", stop, detail, proof=disproof)
            if self.stop_asked():
                return None
            detail = f"{_WHY[stop]}; its negation was not proved either"
            return self._one(search, spec, "unproved", stop, detail)
        return self._one(search, spec, "unproved", stop, _WHY[stop])

    def _check(
        self,
        search: Search,
        spec: GoalSpec,
        specs: list[GoalSpec],
        stop: Stop,
        script: str,
        environment: LeanEnvironment,
    ) -> VerdictReached:
        """The replay check of a script; in a file, together with those that were found before."""
        target = self.run.record.target
        if isinstance(target, StatementTarget):
            verdict = verify_statement(self.replayer, target, script)
            status: GoalStatus = "proved" if verdict.proved else "rejected"
            detail = "" if verdict.proved else f"{verdict.reason}: {verdict.detail}"
            return self._one(search, spec, status, stop, detail, script, verdict.axioms)
        assert spec.sorry is not None
        self._proofs[spec.number] = (spec.sorry, script)
        verdict = self._check_declaration(target, spec.sorry.declaration, specs)
        if verdict is None and not _accepts(environment, self._text(target)):
            del self._proofs[spec.number]
            detail = "error: the file does not elaborate with this script in it"
            return self._one(search, spec, "rejected", stop, detail, script)
        if verdict is None or verdict.reason == "sorry":
            detail = "it closes its goal; other sorries that its declaration needs are open"
            return self._one(search, spec, "partial", stop, detail, script)
        if not verdict.proved:
            del self._proofs[spec.number]
            detail = f"{verdict.reason}: {verdict.detail}"
            return self._one(search, spec, "rejected", stop, detail, script)
        return self._one(search, spec, "proved", stop, "", script, verdict.axioms)

    def _check_declaration(
        self, target: FileTarget, declaration: str, specs: list[GoalSpec]
    ) -> Verdict | None:
        """The replay check of a declaration with every script so far; None if one is missing."""
        family = [s for s in specs if s.sorry is not None and s.sorry.declaration == declaration]
        if any(s.number not in self._proofs for s in family):
            return None
        return verify_file(self.replayer, target.source, self._text(target), declaration)

    def _text(self, target: FileTarget) -> str:
        return with_proofs(target.source, list(self._proofs.values()))

    def _settle_partials(self, specs: list[GoalSpec]) -> None:
        """What was waiting for other sorries is checked again when all have been searched."""
        target = self.run.record.target
        if not isinstance(target, FileTarget):
            return
        for spec in specs:
            earlier = self._verdicts.get(spec.number)
            if earlier is None or earlier.status != "partial" or spec.sorry is None:
                continue
            try:
                verdict = self._check_declaration(target, spec.sorry.declaration, specs)
            except Unchecked as fault:
                self._fault(spec, fault)
                continue
            if verdict is not None and verdict.proved:
                self._reach(spec, self._upgrade(earlier, verdict.axioms))

    def _reach(self, spec: GoalSpec, verdict: VerdictReached) -> None:
        self._verdicts[spec.number] = verdict
        self.run.writer.append([verdict], sync=True)
        self.observer.verdict(spec, verdict)

    def _one(
        self,
        search: Search,
        spec: GoalSpec,
        status: GoalStatus,
        stop: str,
        detail: str = "",
        proof: str = "",
        axioms: tuple[str, ...] = (),
    ) -> VerdictReached:
        return VerdictReached(
            epoch=self.run.writer.epoch,
            at=timestamp(),
            goal=spec.number,
            status=status,
            stop=stop,
            detail=detail,
            proof=proof,
            axioms=axioms,
            iterations=search.iteration - self._iteration,
            elapsed=round(search.elapsed, 3),
        )

    def _upgrade(self, earlier: VerdictReached, axioms: tuple[str, ...]) -> VerdictReached:
        return msgspec.structs.replace(
            earlier,
            epoch=self.run.writer.epoch,
            at=timestamp(),
            status="proved",
            detail="",
            axioms=axioms,
        )

    # -- sessions and results -------------------------------------------------------------

    def _session(self) -> LeanSession:
        spare, self.first = self.first, None
        return spare if spare is not None and spare.alive else self.sessions()

    @contextlib.contextmanager
    def _environment(self, spec: GoalSpec) -> Iterator[LeanEnvironment]:
        """Keeps the session for the next goal, emptied, unless something went wrong."""
        environment = LeanEnvironment(
            self._session, spec.opening, step_seconds=self.run.record.settings.step_timeout
        )
        try:
            yield environment
        except BaseException:
            environment.close()
            raise
        self.first = environment.release()

    def _result(self, specs: list[GoalSpec], complete: bool) -> RunResult:
        record = self.run.record
        goals = tuple(goal for spec in specs if (goal := self._goal_result(spec)) is not None)
        return RunResult(
            run_id=record.run_id,
            directory=str(self.run.directory),
            mode=record.mode,
            proved=sum(goal.status == "proved" for goal in goals),
            total=len(specs),
            complete=complete,
            file=self._write_copy(),
            goals=goals,
        )

    def _goal_result(self, spec: GoalSpec) -> GoalResult | None:
        line = self._verdicts.get(spec.number)
        if line is not None:
            return goal_result(spec.name, line)
        if spec.number not in self._faults:
            return None
        return GoalResult(spec.number, spec.name, "unchecked", "", self._faults[spec.number])

    def _write_copy(self) -> str | None:
        """A copy of the file with every script that passed, or closed its `sorry`."""
        target = self.run.record.target
        if not isinstance(target, FileTarget) or not self._proofs:
            return None
        path = self.run.directory / "proved" / Path(target.path).name
        atomic.make_directory(path.parent)
        atomic.write_bytes(path, self._text(target).encode())
        return str(path)


def _accepts(environment: LeanEnvironment, text: str) -> bool:
    try:
        return environment.accepts(text)
    except LeanError as error:
        raise Unchecked(str(error)) from None


_WHY: dict[Stop, str] = {
    "exhausted": "every tactic that was proposed has been tried",
    "simulations": "the limit of simulations was reached",
    "time": "the time limit was reached",
    "abort": "no agent could go on",
}
