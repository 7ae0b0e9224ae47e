"""The planned runs of an experiment as real proof runs, with one Lean session for all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from treewright.cellview.experiment.plan import Plan, PlannedRun, search_settings
from treewright.cellview.experiment.results import MeasuredRun, measure_run
from treewright.lean.session.interface import LeanSession
from treewright.lean.verify.replayer import Replayer
from treewright.proving import layout
from treewright.proving.phases import SessionFactory
from treewright.proving.prover import Prover
from treewright.proving.run import create_in, make_lean_record, open_run, read_git_record
from treewright.proving.settings import StatementTarget
from treewright.proving.tactics.factory import build_source


class PlanProver:
    """Makes or resumes a planned run. It keeps the session for the next run until `close`."""

    def __init__(
        self,
        plan: Plan,
        sessions: SessionFactory,
        replayer: Replayer,
        stop_asked: Callable[[], bool] = lambda: False,
        *,
        force: bool = False,
    ) -> None:
        self._plan = plan
        self._sessions = sessions
        self._replayer = replayer
        self._stop_asked = stop_asked
        self._force = force
        self._session: LeanSession | None = None

    def __call__(self, planned: PlannedRun, directory: Path) -> MeasuredRun | None:
        if self._stop_asked():
            return None
        settings = search_settings(self._plan, planned)
        if not (directory / layout.RUN).exists():
            session = self._ready()
            lean, git = make_lean_record(session.info), read_git_record(Path.cwd())
            create_in(directory, StatementTarget(planned.goal.statement), settings, lean, git)
        with open_run(directory, force=self._force) as run:
            prover = Prover(
                run,
                self._sessions,
                self._replayer,
                build_source(settings),
                self._stop_asked,
                session=self._session,
                keeps_session=True,
            )
            self._session = None
            try:
                result = prover.prove()
            finally:
                self._session = prover.session
        if not result.complete:
            return None
        return measure_run(planned, directory)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _ready(self) -> LeanSession:
        if self._session is None or not self._session.alive:
            self.close()
            self._session = self._sessions()
        return self._session
