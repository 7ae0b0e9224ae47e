"""The Python interface: `treewright.prove`, `resume_proof`, and `ProofService` behind both.

A function call makes the same runs as `treewright prove`: they are kept below a directory, and can
be resumed and replayed. A goal is called proved if the replay check accepted its proof.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from treewright.kernel.errors import LockActive, UsageError, require_several
from treewright.kernel.storage.run_directory import validate_run_id
from treewright.lean.choice import choose, open_lean
from treewright.lean.hosts.host import Host
from treewright.lean.processes import LeanProcesses
from treewright.lean.verify.verdict import DEFAULT_AXIOMS
from treewright.proving import layout, run, targets
from treewright.proving.phases import Observer
from treewright.proving.prover import Prover
from treewright.proving.run import (
    RunResult,
    imported_modules,
    make_lean_record,
    read_git_record,
    require_unchanged,
)
from treewright.proving.settings import (
    FileTarget,
    RunRecord,
    Settings,
    SourceSettings,
    Target,
    read_run,
)
from treewright.proving.tactics.chat_model import Spend
from treewright.proving.tactics.factory import (
    add_environment_tactics,
    add_library_index,
    open_source,
)
from treewright.proving.tactics.source import TacticSource
from treewright.proving.targets import GoalSpec
from treewright.search.andor import policies

Sources = Callable[[RunRecord, Spend], AbstractContextManager[TacticSource]]
"""Opens the tactic source of a run. The second argument is told of each answer's usage before the
answer is used."""


class NewRun(NamedTuple):
    """The directory of a new run, and the goals of its file; a statement has no entry."""

    directory: Path
    specs: list[GoalSpec]


@dataclass(slots=True)
class ProofService:
    """Creates and resumes proof runs on one Lean, for the command line, servers and library calls.

    Args:
        lean: The owner of the Lean processes; all runs use its kept session.
        base: The directory below which the runs are kept.
        sources: Opens the tactic source of a run.
        observer: Is told about the progress.
        stop_asked: Returns whether the user asked to stop.
        in_place: Whether the proofs of a file are put into that file when its run is complete.
    """

    lean: LeanProcesses
    base: Path = field(default_factory=Path.cwd)
    sources: Sources = open_source
    observer: Observer = field(default_factory=Observer)
    stop_asked: Callable[[], bool] = lambda: False
    in_place: bool = False

    def prove(self, target: Target, settings: Settings, run_id: str | None = None) -> RunResult:
        """Create a run and prove its goals, until the end or until the user asks to stop."""
        return self.resume(self.create(target, settings, run_id).directory)

    def create(self, target: Target, settings: Settings, run_id: str | None = None) -> NewRun:
        """Create a run.

        Raises:
            UsageError: The file has nothing to prove. No run is created.
        """
        commit = read_git_record(self.base)
        session = self.lean.kept_session()
        specs = targets.read_file_goals(target, session) if isinstance(target, FileTarget) else []
        if isinstance(target, FileTarget) and specs:
            opening = specs[0].opening
            settings = add_environment_tactics(settings, target, self.base, session, opening)
        lean = make_lean_record(session.info, imported_modules(target, self.lean.project))
        directory = run.new_directory(self.base, run_id)
        run.create(directory, target, settings, lean, commit)
        return NewRun(directory, specs)

    def resume(self, directory: Path, *, force: bool = False) -> RunResult:
        """Continue a run. `force` takes over a lease that is not stale."""
        with run.open_run(directory, force=force) as opened:
            modules = imported_modules(opened.record.target, self.lean.project)
            require_unchanged(opened.record, modules)
            try:
                with self.sources(opened.record, opened.spent.add) as source:
                    self.observer.run(opened.record, directory)
                    prover = Prover(opened, self.lean, source, self.stop_asked, self.observer)
                    result = prover.prove()
            finally:
                self.observer.spent(opened.spent)
        if self.in_place and result.complete and (path := run.write_in_place(directory, result)):
            self.observer.written(path)
        return result


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
    """Search for proofs of a file's sorries, or of a statement.

    Args:
        target: A file ("F.lean"), or one of its declarations ("F.lean:theorem").
        statement: A proposition, instead of a target.
        simulations: The most simulations for each goal.
        time_limit: The most seconds for each goal.
        step_timeout: The most seconds for one tactic.
        seed: The seed of the search.
        policy: The search policy.
        options: The options of the policy.
        tactics: Tactics that are tried first at every goal.
        premises: The path of a premise index, to search it for lemmas.
        library: Whether lemmas of Lean's own library are searched.
        axioms: The axioms that a proof may rest on.
        refute: Whether the negation of a goal is searched too.
        lean: The Lean backend.
        sandbox: Whether Lean runs in a sandbox.
        directory: The directory below which the run is kept.
        run_id: The id of the run; one is made if there is none.
        stop: Is called between two steps. When it returns True, the search ends; its results are
            kept, and `resume_proof` continues it.
        announce: Receives messages about work that is done once, such as building an index.

    Returns:
        The status of each goal. `is_proved` says whether all goals are proved.

    Raises:
        UsageError: An argument is wrong, or the run exists.
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
            strategies=True,
        ),
        axioms=tuple(sorted(axioms)),
    )
    wanted = targets.parse(str(target) if target is not None else None, statement)
    base = Path(directory)
    if run_id and (base / layout.RUNS / validate_run_id(run_id) / layout.RUN).exists():
        path = str(base / layout.RUNS / run_id)
        raise UsageError(
            f"run {run_id!r} exists; continue it with treewright.resume_proof({path!r})"
        )
    with _open_service(wanted, settings, lean, sandbox, base, announce) as (host, service):
        service.stop_asked = stop
        if library:
            settings = add_library_index(settings, host, announce)
        return service.prove(wanted, settings, run_id)


def resume_proof(
    path: str | Path,
    *,
    sandbox: bool = False,
    force: bool = False,
    stop: Callable[[], bool] = lambda: False,
    announce: Callable[[str], None] = lambda text: None,
) -> RunResult:
    """Continue a proof run that was stopped or killed, with the settings it was created with.

    Args:
        path: The directory of the run, or its id.
        sandbox: Whether Lean runs in a sandbox.
        force: Whether to take over the run from an owner with a lease that is not stale.
        stop: As for `prove`.
        announce: As for `prove`.

    Returns:
        The status of each goal.

    Raises:
        UsageError: There is no such run.
        LockActive: Another process owns the run.
    """
    directory = run.find_run(str(path), Path.cwd())
    record = read_run(directory / layout.RUN)
    backend = record.lean.backend
    with _open_service(record.target, record.settings, backend, sandbox, directory, announce) as (
        _,
        service,
    ):
        service.stop_asked = stop
        try:
            return service.resume(directory, force=force)
        except LockActive as error:  # a function call has no flag
            raise LockActive(str(error).replace("--force", "force=True")) from None


@contextlib.contextmanager
def _open_service(
    target: Target,
    settings: Settings,
    lean: str,
    sandbox: bool,
    base: Path,
    announce: Callable[[str], None],
) -> Iterator[tuple[Host, ProofService]]:
    """Start a Lean for one call, and end it with the call."""
    path = Path(target.path).resolve() if isinstance(target, FileTarget) else None
    choice = choose(lean, path.parent if path is not None else None, sandbox=sandbox)
    host, project = open_lean(choice, path, announce)
    with LeanProcesses(host, project, axioms=frozenset(settings.axioms)) as processes:
        processes.start()
        yield host, ProofService(processes, base)
