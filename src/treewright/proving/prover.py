"""Proving the goals of a run, one after the other: search, script, replay check, verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from treewright.kernel.clock import timestamp
from treewright.kernel.errors import StorageError, TreewrightError
from treewright.kernel.storage import atomic
from treewright.lean.session.inputs import GOAL_NAME, theorem_texts
from treewright.lean.session.interface import LeanError, LeanSession
from treewright.lean.verify.replayer import Replayer
from treewright.llm.usage_log import UsageLog
from treewright.proving import layout
from treewright.proving.checker import Judge, Judgement, Unchecked
from treewright.proving.pursuing import Pursuit, SessionFactory, Spare
from treewright.proving.records import Iteration, VerdictReached
from treewright.proving.report import write_report
from treewright.proving.run import (
    GoalResult,
    ProofRun,
    RunResult,
    copy_of,
    goal_result,
    proved_copy_of,
    write_result,
)
from treewright.proving.search import Limits, Search
from treewright.proving.settings import RunRecord, StatementTarget, Target
from treewright.proving.stopping import cancelled_when
from treewright.proving.tactics.source import TacticSource
from treewright.proving.targets import GoalSpec, TellTrouble, file_goals, statement_goal
from treewright.proving.trace import Recording
from treewright.search.andor.graph import Graph


@dataclass(slots=True)
class Observer:
    """Told about progress; the defaults say nothing."""

    goal: Callable[[GoalSpec, int], None] = lambda spec, total: None
    iteration: Callable[[Iteration, Graph], None] = lambda line, tree: None
    verdict: Callable[[GoalSpec, VerdictReached], None] = lambda spec, line: None
    negation: Callable[[GoalSpec, bool], None] = lambda spec, early: None
    again: Callable[[GoalSpec, Sequence[str]], None] = lambda spec, names: None
    fault: Callable[[GoalSpec, str], None] = lambda spec, why: None
    run: Callable[[RunRecord, Path], None] = lambda record, directory: None
    written: Callable[[str], None] = lambda path: None
    trouble: TellTrouble = lambda names, error: None
    spent: Callable[[UsageLog], None] = lambda log: None


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
    _left_alone: tuple[str, ...] = field(default=(), init=False)
    _iteration: int = field(default=0, init=False)

    def prove(self) -> RunResult:
        """All goals that have no verdict yet. Interrupted, it leaves the rest for `--resume`.

        So it leaves goals whose check came to no answer: a fault is not a verdict. What came of it
        is written down: `result.json` and the report.
        """
        self._verdicts = self.run.verdicts()
        spare = Spare(self.sessions, self.first)
        try:
            specs = self._specs(spare)
            imports = bool(self.run.record.lean.modules)
            judge = Judge(self.run.record.target, self.replayer, specs, imports)
            pursuit = Pursuit(
                self.run,
                spare,
                self.replayer,
                self.source,
                judge,
                self._verdicts,
                self.stop_asked,
                self.observer.negation,
                self.observer.again,
            )
            complete = all(self._goal(spec, pursuit) for spec in specs)
            complete = complete and self._settle_partials(judge, pursuit) and not self._faults
        finally:
            self.first = spare.session
            if self.first is not None and not self.keep:
                self.first.close()
        result = self._result(judge, complete)
        write_result(self.run.directory, result)
        write_report(self.run.directory)
        return result

    # -- one goal -------------------------------------------------------------------------

    def _specs(self, spare: Spare) -> list[GoalSpec]:
        target = self.run.record.target
        if isinstance(target, StatementTarget):
            return [statement_goal(target)]
        session = spare.session = spare.take()
        try:
            with cancelled_when(self.stop_asked, session.cancel):
                return file_goals(target, session, self._left_out)
        except TreewrightError:
            if self.stop_asked():
                raise TreewrightError(f"stopped while {target.path} was read") from None
            raise

    def _left_out(self, names: tuple[str, ...], error: str) -> None:
        self._left_alone += names
        self.observer.trouble(names, error)

    def _goal(self, spec: GoalSpec, pursuit: Pursuit) -> bool:
        """False if it was interrupted before there was a verdict."""
        recording = Recording(spec.number, self.run.lines)
        known = self._verdicts.get(spec.number)
        if known is not None:
            self._iteration += len(recording.iterations)
            if known.proof and known.status in ("proved", "partial"):
                pursuit.judge.remember(spec, known.proof)
            self.observer.verdict(spec, known)
            return True
        self.observer.goal(spec, len(pursuit.judge.specs))
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
            verdict = pursuit.pursue(search, spec)
        except Unchecked as fault:
            self._fault(spec, fault)
            return True
        finally:
            self._iteration = search.iteration
        if verdict is not None:
            self._reach(spec, verdict)
        return verdict is not None

    # -- verdicts -------------------------------------------------------------------------

    def _settle_partials(self, judge: Judge, pursuit: Pursuit) -> bool:
        """What was waiting for other sorries is checked again when all have been searched; what
        still rests on one is searched once more without it. False if that was interrupted."""
        for spec in judge.specs:
            if self._settled(spec, judge) or not self._is_partial(spec):
                continue
            earlier = self._verdicts[spec.number]
            if earlier.again or spec.number in self._faults:
                continue
            try:
                verdict = pursuit.once_more(spec, earlier)
            except Unchecked as fault:
                self._fault(spec, fault)
                continue
            if verdict is None:
                return False
            if verdict is not earlier:
                self._reach(spec, verdict)
        if any(verdict.again == "solved" for verdict in self._verdicts.values()):
            for spec in judge.specs:  # sorries of one declaration wait for each other
                self._settled(spec, judge)
        return True

    def _is_partial(self, spec: GoalSpec) -> bool:
        return self._status(spec) == "partial"

    def _settled(self, spec: GoalSpec, judge: Judge) -> bool:
        """Whether a script that was waiting for others is a proof now."""
        if not self._is_partial(spec) or spec.number in self._faults:
            return False
        try:
            judgement = judge.settles(spec)
        except Unchecked as fault:
            self._fault(spec, fault)
            return False
        if judgement is not None:
            self._reach(spec, self._upgrade(self._verdicts[spec.number], judgement))
        return judgement is not None

    def _reach(self, spec: GoalSpec, verdict: VerdictReached) -> None:
        self._verdicts[spec.number] = verdict
        self.run.writer.append([verdict], sync=True)
        self.observer.verdict(spec, verdict)

    def _fault(self, spec: GoalSpec, fault: Unchecked) -> None:
        self._faults[spec.number] = str(fault)
        self.observer.fault(spec, str(fault))

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

    def _result(self, judge: Judge, complete: bool) -> RunResult:
        record = self.run.record
        found = (self._goal_result(spec) for spec in judge.specs)
        goals = tuple(goal for goal in found if goal is not None)
        proofs = judge.text_with({goal.goal for goal in goals if goal.status == "proved"})
        text, target = judge.text(), record.target
        whole = self._write_copy(text, copy_of(self.run.directory, target))
        apart = proved_copy_of(self.run.directory, target)
        return RunResult(
            run_id=record.run_id,
            directory=str(self.run.directory),
            mode=record.mode,
            proved=sum(goal.status == "proved" for goal in goals),
            total=len(judge.specs),
            complete=complete,
            file=whole,
            goals=goals,
            certificate=self._certify(judge),
            left_alone=self._left_alone,
            answers=self.run.spent.answers,
            usage=None if record.settings.sources.endpoint is None else self.run.spent.usage,
            proved_file=whole if proofs == text else self._write_copy(proofs, apart),
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
                    self.run.directory, judge, self.run.record.target, text, [*declarations]
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

    def _write_copy(self, text: str | None, path: Path | None) -> str | None:
        """A copy of the file with scripts in it, if there are any."""
        if text is None or path is None:
            return None
        atomic.make_directory(path.parent)
        atomic.write_bytes(path, text.encode())
        return str(path)


def write_certificate(
    directory: Path, judge: Judge, target: Target, candidate: str, declarations: list[str]
) -> Path:
    """The certificate beside a run's proofs, of one check of the candidate as a whole: verdicts of
    earlier processes are claims. With it stand the two texts it is about, so that `treewright lean
    verify` can make it again.

    `candidate` is the file with its scripts, or the script of a statement. Raises `Unchecked`, or
    `StorageError` if what the run says was proved does not hold.
    """
    if isinstance(target, StatementTarget):
        stem, targets = "statement", [GOAL_NAME]
        original, text = theorem_texts(target.statement, candidate, imports=target.imports)
    else:
        stem, targets = Path(target.path).stem, declarations
        original, text = target.source, candidate
    verdict = judge.check(original, text, targets)
    if verdict.certificate is None:
        raise StorageError(
            f"{directory}: what its trace says was proved does not hold "
            f"({verdict.reason}: {verdict.detail}); the trace was changed: start a new run"
        )
    place = directory / layout.PROVED
    atomic.make_directory(place)
    atomic.write_bytes(place / f"{stem}.lean", text.encode())
    atomic.write_bytes(place / f"{stem}.original.lean", original.encode())
    certificate = place / f"{stem}.certificate.json"
    atomic.write_bytes(certificate, verdict.certificate.to_json())
    return certificate
