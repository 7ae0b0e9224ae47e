"""Targets proved as runs of their own, on a Lean that is at hand: the way in for every caller.

The command line, `treewright ci`, `treewright.prove` and servers differ in where their Lean comes
from and whom they tell; what a run is made of, and in which order, is here. The session is kept
from one run to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from treewright.lean.replay import Replayer
from treewright.lean.session import LeanSession
from treewright.lean.workspace.project import Project
from treewright.proving import run, targets
from treewright.proving.prove import Observer, Prover
from treewright.proving.provenance import git_record, lean_record, modules_of, require_unchanged
from treewright.proving.pursuing import SessionFactory
from treewright.proving.run import RunResult
from treewright.proving.settings import FileTarget, RunRecord, Settings, Target
from treewright.proving.sources.base import TacticSource
from treewright.proving.sources.llm import Spend
from treewright.proving.sources.opening import opened_source
from treewright.proving.targets import GoalSpec

Sources = Callable[[RunRecord, Spend], AbstractContextManager[TacticSource]]
"""Opens the tactic source of a run; what its model uses is told before the answer is acted on."""


class NewRun(NamedTuple):
    """A run that was made, and what is to be proved in it (of a statement, only in the run)."""

    directory: Path
    specs: list[GoalSpec]


@dataclass(slots=True)
class Proving:
    """Makes and continues runs below `base`. Closing it ends the session that it holds."""

    sessions: SessionFactory
    replayer: Replayer
    project: Project | None = None
    base: Path = field(default_factory=Path.cwd)
    sources: Sources = opened_source
    observer: Observer = field(default_factory=Observer)
    stop_asked: Callable[[], bool] = lambda: False
    session: LeanSession | None = None
    in_place: bool = False
    """Whether the proofs of a file are put into that file when its run is complete."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
        self.session = None

    def prove(self, target: Target, settings: Settings, run_id: str | None = None) -> RunResult:
        """A new run, to its end or until somebody asks to stop."""
        return self.go_on(self.create(target, settings, run_id).directory)

    def create(self, target: Target, settings: Settings, run_id: str | None = None) -> NewRun:
        """Where a file has nothing to prove that is an error, and no run is made."""
        commit = git_record(self.base)
        session = self._opened()
        specs = targets.file_goals(target, session) if isinstance(target, FileTarget) else []
        lean = lean_record(session.info, modules_of(target, self.project))
        return NewRun(run.create(self.base, run_id, target, settings, lean, commit), specs)

    def go_on(self, directory: Path, *, force: bool = False) -> RunResult:
        """A run from where it is; `force` takes over a lock that is not stale."""
        with run.opened(directory, force=force) as opened:
            require_unchanged(opened.record, modules_of(opened.record.target, self.project))
            try:
                with self.sources(opened.record, opened.spent.add) as source:
                    self.observer.run(opened.record, directory)
                    prover = Prover(
                        opened, self.sessions, self.replayer, source, self.stop_asked,
                        self.observer, self.session, keep=True,
                    )  # fmt: skip
                    try:
                        result = prover.prove()
                    finally:
                        self.session = prover.first
            finally:
                self.observer.spent(opened.spent)
        if self.in_place and result.complete and (path := run.write_in_place(directory, result)):
            self.observer.written(path)
        return result

    def _opened(self) -> LeanSession:
        """The one at hand, or another if it was lost."""
        if self.session is None or not self.session.alive:
            self.session = self.sessions()
        return self.session
