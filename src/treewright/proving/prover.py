"""The goals of a run, one after the other: results, the file with its proofs, the certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from treewright.kernel.clock import timestamp
from treewright.kernel.errors import StorageError, TreewrightError
from treewright.kernel.storage import atomic
from treewright.lean.processes import LeanProcesses
from treewright.lean.session.errors import LeanError
from treewright.lean.session.inputs import GOAL_NAME
from treewright.proving import layout
from treewright.proving.checker import ScriptChecker, Unchecked, statement_texts
from treewright.proving.phases import (
    GoalProver,
    Observer,
    cancel_on_stop,
)
from treewright.proving.records import GoalResult, Iteration
from treewright.proving.report import write_report
from treewright.proving.run import (
    ProofRun,
    RunResult,
    last_results,
    proofs_path,
    scripts_path,
    write_result,
)
from treewright.proving.settings import StatementTarget
from treewright.proving.tactics.source import TacticSource
from treewright.proving.targets import GoalSpec, read_file_goals, statement_goal


@dataclass(slots=True)
class Prover:
    """Proves the goals of one run.

    Args:
        run: The run, opened by its owner.
        lean: The owner of the Lean processes. All searches use its kept session.
        source: Suggests tactics.
        stop_asked: Returns whether the user asked to stop.
        observer: Is told about the progress.
    """

    run: ProofRun
    lean: LeanProcesses
    source: TacticSource
    stop_asked: Callable[[], bool] = lambda: False
    observer: Observer = field(default_factory=Observer)
    _results: dict[int, GoalResult] = field(default_factory=dict, init=False)
    _faults: dict[int, str] = field(default_factory=dict, init=False)
    _left_alone: tuple[str, ...] = field(default=(), init=False)

    def prove(self) -> RunResult:
        """Prove all goals that have no result yet; write `result.json` and the report.

        A goal has no verdict if its check gave no answer: it is `unchecked`, the run is not
        complete, and `--resume` tries again. The same holds for the goals after a stop.
        """
        self._results = last_results(self.run.lines)
        specs = self._read_goals()
        record = self.run.record
        checker = ScriptChecker(record.target, self.lean.replayer, specs, bool(record.lean.modules))
        prover = GoalProver(
            self.run,
            self.lean,
            checker,
            self.source,
            self._results,
            self.stop_asked,
            self.observer,
        )
        # `all` ends at the goal during which the user asked to stop.
        complete = all(self._prove_goal(spec, prover) for spec in specs)
        complete = complete and self._finish_partial_goals(prover) and not self._faults
        result = self._run_result(checker, complete)
        write_result(self.run.directory, result)
        write_report(self.run.directory)
        return result

    # -- goals ----------------------------------------------------------------------------

    def _read_goals(self) -> list[GoalSpec]:
        target = self.run.record.target
        if isinstance(target, StatementTarget):
            return [statement_goal(target)]

        def leave_alone(names: tuple[str, ...], error: str) -> None:
            self._left_alone += names
            self.observer.trouble(names, error)

        session = self.lean.kept_session()
        try:
            with cancel_on_stop(self.stop_asked, session.cancel):
                return read_file_goals(target, session, leave_alone)
        except TreewrightError:
            if self.stop_asked():
                raise TreewrightError(f"stopped while {target.path} was read") from None
            raise

    def _prove_goal(self, spec: GoalSpec, prover: GoalProver) -> bool:
        """Prove a goal that has no result yet.

        Returns False if the user asked to stop meanwhile. After a fault of the replay check the run
        goes on with the next goal.
        """
        known = self._results.get(spec.number)
        if known is not None:
            # Iterations of `prove` are counted over all goals of the run.
            prover.iteration += sum(
                isinstance(line, Iteration) and (line.goal, line.phase) == (spec.number, "prove")
                for line in self.run.lines
            )
            if known.proof and known.status in ("proved", "partial"):
                prover.checker.keep(spec, known.proof)
            self.observer.result(spec, known)
            return True
        self.observer.goal(spec, len(prover.checker.specs))
        try:
            result = prover.prove(spec)
        except Unchecked as fault:
            self._note_fault(spec, fault)
            return True
        if result is None:
            return False
        self._record(spec, result)
        return True

    def _finish_partial_goals(self, prover: GoalProver) -> bool:
        """Check again the goals that waited for other sorries, and retry those that still do.

        Returns False if the user asked to stop meanwhile.
        """
        specs = prover.checker.specs
        for spec in specs:
            if self._recheck_partial(spec, prover.checker) or spec.number in self._faults:
                continue
            earlier = self._results[spec.number]
            if earlier.status != "partial" or earlier.retry:
                continue
            try:
                result = prover.retry(spec, earlier)
            except Unchecked as fault:
                self._note_fault(spec, fault)
                continue
            if result is None:
                return False
            if result is not earlier:
                self._record(spec, result)
        if any(result.retry == "solved" for result in self._results.values()):
            # A retry that proved one goal may have been the last step for another goal of its
            # declaration that this loop checked before.
            for spec in specs:
                self._recheck_partial(spec, prover.checker)
        return True

    def _recheck_partial(self, spec: GoalSpec, checker: ScriptChecker) -> bool:
        """Return whether a partial goal is proved now, and record that."""
        earlier = self._results.get(spec.number)
        if earlier is None or earlier.status != "partial" or spec.number in self._faults:
            return False
        try:
            checked = checker.recheck_partial(spec)
        except Unchecked as fault:
            self._note_fault(spec, fault)
            return False
        if checked is None:
            return False
        proved = msgspec.structs.replace(
            earlier, status="proved", detail="", axioms=checked.axioms, check=checked.check
        )
        self._record(spec, proved)
        return True

    def _record(self, spec: GoalSpec, result: GoalResult) -> None:
        """Append a result to the trace."""
        result = msgspec.structs.replace(result, epoch=self.run.writer.epoch, at=timestamp())
        self._results[spec.number] = result
        self.run.writer.append([result], sync=True)
        self.observer.result(spec, result)

    def _note_fault(self, spec: GoalSpec, fault: Unchecked) -> None:
        self._faults[spec.number] = str(fault)
        self.observer.fault(spec, str(fault))

    # -- the result of the run ------------------------------------------------------------

    def _run_result(self, checker: ScriptChecker, complete: bool) -> RunResult:
        """Write the copies of the file and the certificate, and return the result of the run."""
        record = self.run.record
        goals: list[GoalResult] = []
        for spec in checker.specs:
            if (result := self._results.get(spec.number)) is not None:
                goals.append(result)
            elif (fault := self._faults.get(spec.number)) is not None:
                goals.append(GoalResult(spec.number, spec.name, "unchecked", detail=fault))
        text = checker.text()
        proofs = checker.text({goal.goal for goal in goals if goal.status == "proved"})
        file = _write_text(text, scripts_path(self.run.directory, record.target))
        proved_file = file
        if proofs != text:
            proved_file = _write_text(proofs, proofs_path(self.run.directory, record.target))
        return RunResult(
            run_id=record.run_id,
            directory=str(self.run.directory),
            mode=record.mode,
            proved=sum(goal.status == "proved" for goal in goals),
            total=len(checker.specs),
            complete=complete,
            file=file,
            goals=tuple(goals),
            certificate=self._write_certificate(checker),
            left_alone=self._left_alone,
            answers=self.run.spent.answers,
            usage=None if record.settings.sources.endpoint is None else self.run.spent.usage,
            proved_file=proved_file,
        )

    def _write_certificate(self, checker: ScriptChecker) -> str | None:
        """Check the proofs of the run as a whole, write the certificate and return its path.

        The results of earlier processes are claims until this check. The two texts that it is about
        stand beside it: with them, `treewright lean verify` makes the same certificate.

        Returns None if no goal is proved, or if the replay check gave no answer.

        Raises:
            StorageError: A proof in the trace does not hold.
        """
        proved = [
            spec
            for spec in checker.specs
            if (result := self._results.get(spec.number)) and result.status == "proved"
        ]
        if not proved:
            return None
        target = self.run.record.target
        if isinstance(target, StatementTarget):
            stem, names = "statement", [GOAL_NAME]
            original, text = statement_texts(target, self._results[proved[0].number].proof)
        else:
            stem, original, text = Path(target.path).stem, target.source, checker.text() or ""
            names = [*dict.fromkeys(s.sorry.declaration for s in proved if s.sorry is not None)]
        try:
            verdict = checker.check(original, text, names)
        except (Unchecked, LeanError) as fault:
            self.observer.fault(proved[0], f"no certificate: {fault}")
            return None
        if verdict.certificate is None:
            raise StorageError(
                f"{self.run.directory}: a proof in the trace does not hold ({verdict.reason}: "
                f"{verdict.detail}); the trace was changed: start a new run"
            )
        folder = self.run.directory / layout.PROVED
        atomic.make_directory(folder)
        atomic.write_bytes(folder / f"{stem}.lean", text.encode())
        atomic.write_bytes(folder / f"{stem}.original.lean", original.encode())
        certificate = folder / f"{stem}.certificate.json"
        atomic.write_bytes(certificate, verdict.certificate.to_json())
        return str(certificate)


def _write_text(text: str | None, path: Path | None) -> str | None:
    if text is None or path is None:
        return None
    atomic.make_directory(path.parent)
    atomic.write_bytes(path, text.encode())
    return str(path)
