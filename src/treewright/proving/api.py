"""The Python interface: `prove`, `resume_proof`, and the runs that every caller makes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from treewright.kernel.errors import LockActive, UsageError, require_several
from treewright.kernel.storage.run_directory import validate_run_id
from treewright.lean.choice import choose, open_lean
from treewright.lean.crew import Crew
from treewright.lean.hosts.host import Host
from treewright.lean.project.project import Project
from treewright.lean.session.interface import LeanSession
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS
from treewright.proving import layout, run, targets
from treewright.proving.prover import Observer, Prover
from treewright.proving.pursuing import SessionFactory
from treewright.proving.run import RunResult, git_record, lean_record, modules_of, require_unchanged
from treewright.proving.settings import (
    FileTarget,
    RunRecord,
    Settings,
    SourceSettings,
    Target,
    read_run,
)
from treewright.proving.tactics.chat_model import Spend
from treewright.proving.tactics.factory import opened_source, with_library
from treewright.proving.tactics.source import TacticSource
from treewright.proving.targets import GoalSpec
from treewright.search.andor import policies

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


def prove(
    target: str | Path | None = None,
    *,
    statement: str | None = None,
    simulations: int = 200,
    time_limit: float | None = None,
    step_timeout: float = 5.0,
    seed: int = 0,
    policy: str = policies.Mcts.name,
    options: Mapping[str, Any] | None = None,
    tactics: Sequence[str] = (),
    premises: str | Path | None = None,
    library: bool = True,
    axioms: Collection[str] = DEFAULT_AXIOMS,
    refute: bool = True,
    lean: str = "auto",
    sandbox: bool = False,
    directory: str | Path = ".",
    run_id: str | None = None,
    stop: Callable[[], bool] = lambda: False,
    announce: Callable[[str], None] = lambda text: None,
) -> RunResult:
    """Search for proofs of a file's sorries ("F.lean", "F.lean:theorem"), or of a statement.

    `simulations` and `time_limit` (seconds) are for each goal; `tactics` are tried first.
    `stop` is asked between two steps; what was found is kept, and `resume_proof` goes on.
    The result says for each goal what became of it, and `is_proved` whether all are proved.
    """
    if (target is None) == (statement is None):
        raise UsageError("give one thing to prove: a target ('F.lean', 'F.lean:name') or statement")
    require_several(tactics=tactics, axioms=axioms)
    for name, seconds in (("time_limit", time_limit), ("step_timeout", step_timeout)):
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise UsageError(f"{name} must be a positive number of seconds")
    if simulations < 1:
        raise UsageError("simulations must be at least 1")
    if "sorryAx" in axioms:
        raise UsageError("axioms cannot allow sorryAx: a proof with sorry is none")
    settings = Settings(
        simulations=simulations,
        time_limit=time_limit,
        step_timeout=step_timeout,
        seed=seed,
        refute=refute,
        policy=policies.make(policy, dict(options or {})),
        sources=SourceSettings(
            tactics="\n".join(tactics) or None,
            premises=str(premises) if premises is not None else None,
            known=True,
        ),
        axioms=tuple(sorted(axioms)),
    )
    wanted = targets.parse(str(target) if target is not None else None, statement)
    base = Path(directory)
    if run_id and (base / layout.RUNS / validate_run_id(run_id) / layout.RUN).exists():
        there = str(base / layout.RUNS / run_id)
        raise UsageError(f"run {run_id!r} exists; go on with treewright.resume_proof({there!r})")
    with _proving(wanted, settings, lean, sandbox, base, announce) as (host, proving):
        proving.stop_asked = stop
        if library:
            settings = with_library(settings, host, announce)
        return proving.prove(wanted, settings, run_id)


def resume_proof(
    path: str | Path,
    *,
    sandbox: bool = False,
    force: bool = False,
    stop: Callable[[], bool] = lambda: False,
    announce: Callable[[str], None] = lambda text: None,
) -> RunResult:
    """Go on with a proof run that was stopped or killed, under the settings that it has."""
    directory = run.locate(str(path), Path.cwd())
    record = read_run(directory / layout.RUN)
    backend = record.lean.backend
    settings = record.settings
    with _proving(record.target, settings, backend, sandbox, directory, announce) as (_, proving):
        proving.stop_asked = stop
        try:
            return proving.go_on(directory, force=force)
        except LockActive as error:  # there is no flag here
            raise LockActive(str(error).replace("--force", "force=True")) from None


@contextlib.contextmanager
def _proving(
    target: Target,
    settings: Settings,
    lean: str,
    sandbox: bool,
    base: Path,
    announce: Callable[[str], None],
) -> Iterator[tuple[Host, Proving]]:
    """A Lean of the call's own, ended with it."""
    place = Path(target.path).resolve() if isinstance(target, FileTarget) else None
    choice = choose(lean, place.parent if place is not None else None, sandbox=sandbox)
    host, project = open_lean(choice, place, announce)
    with (
        Crew(host, axioms=frozenset(settings.axioms), project=project) as crew,
        Proving(crew.session, crew.replayer, project, base) as proving,
    ):
        yield host, proving
