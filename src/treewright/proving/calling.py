"""`treewright.prove`: a proof search as a function call.

The same runs as `treewright prove` makes, below `directory`: kept, resumable, replayable. What is
called proved, the replay check has accepted.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from treewright.kernel.errors import LockActive, UsageError, require_several
from treewright.kernel.storage.run_directory import validate_run_id
from treewright.lean.backend import choose
from treewright.lean.crew import Crew
from treewright.lean.host import Host
from treewright.lean.projects import open_lean
from treewright.lean.verdict import DEFAULT_AXIOMS
from treewright.proving import layout, run, targets
from treewright.proving.lifecycle import Proving
from treewright.proving.run import RunResult
from treewright.proving.settings import FileTarget, Settings, SourceSettings, Target, read_run
from treewright.proving.sources.opening import with_library
from treewright.search.andor import policies


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
