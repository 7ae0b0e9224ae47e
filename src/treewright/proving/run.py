"""A proof run on disk: `run.json`, `trace.jsonl`, `result.json`, and who owns them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from treewright.kernel.clock import timestamp
from treewright.kernel.errors import StorageError, UsageError
from treewright.kernel.storage import atomic, journal
from treewright.kernel.storage.lease import DEFAULT_STALE_SECONDS, Lease
from treewright.kernel.storage.run_directory import (
    RunEnvironment,
    hide_from_git,
    new_run_id,
    prepare,
    validate_run_id,
)
from treewright.lean.project.project import Project
from treewright.lean.session.answers import SessionInfo
from treewright.lean.sorries import patch_of
from treewright.llm.usage import Usage
from treewright.llm.usage_log import UsageLog
from treewright.proving import layout
from treewright.proving.records import GoalStatus, PartialProof, TraceLine, VerdictReached
from treewright.proving.settings import (
    FORMAT_VERSION,
    TRACE_VERSION,
    FileTarget,
    GitRecord,
    LeanRecord,
    RunRecord,
    Settings,
    Target,
    read_run,
    write_run,
)
from treewright.proving.trace import TraceWriter, read_trace


class GoalResult(msgspec.Struct, frozen=True):
    """How one goal ended. `unchecked` is no verdict: a check was lost; `--resume` tries again."""

    goal: int
    name: str
    status: GoalStatus | Literal["unchecked"]
    stop: str
    detail: str = ""
    proof: str = ""
    axioms: tuple[str, ...] = ()
    iterations: int = 0
    elapsed: float = 0.0
    partial: PartialProof | None = None


class RunResult(msgspec.Struct, frozen=True):
    """`result.json`, and what `prove --json` prints.

    `left_alone`: declarations with a sorry that an error in the file concerns. `file` has every
    script that closes its goal; `proved_file` only those that are proofs: it is what goes into the
    author's own file. `answers` and `usage` are of the model, over all processes of the run;
    `usage` is None where there is none.
    """

    run_id: str
    directory: str
    mode: str
    proved: int
    total: int
    complete: bool
    file: str | None
    goals: tuple[GoalResult, ...]
    certificate: str | None = None
    left_alone: tuple[str, ...] = ()
    answers: int = 0
    usage: Usage | None = None
    proved_file: str | None = None

    @property
    def is_proved(self) -> bool:
        """Whether the replay check accepted a proof of every goal."""
        return self.complete and self.proved == self.total > 0 and not self.left_alone


@dataclass(frozen=True, slots=True)
class ProofRun:
    """An open run. `lines` is what earlier processes wrote, `spent` what all used of the model."""

    directory: Path
    record: RunRecord
    lines: list[TraceLine]
    writer: TraceWriter
    spent: UsageLog

    def verdicts(self) -> dict[int, VerdictReached]:
        """The last verdict on each goal so far."""
        return verdicts(self.lines)


def verdicts(lines: Iterable[TraceLine]) -> dict[int, VerdictReached]:
    """The last verdict on each goal."""
    return {line.goal: line for line in lines if isinstance(line, VerdictReached)}


def goal_result(name: str, line: VerdictReached) -> GoalResult:
    return GoalResult(
        line.goal, name, line.status, line.stop, line.detail, line.proof, line.axioms,
        line.iterations, line.elapsed, line.partial,
    )  # fmt: skip


def locate(run: str, base: Path) -> Path:
    """A run by its id under `base`, or by the path of its directory."""
    path = Path(run)
    if (path / layout.RUN).is_file():
        return path
    directory = base / layout.RUNS / validate_run_id(path.name if path.parent != Path(".") else run)
    if not (directory / layout.RUN).is_file():
        raise UsageError(f"there is no proof run {run!r} under {base / layout.RUNS}")
    return directory


def create(
    base: Path,
    run_id: str | None,
    target: Target,
    settings: Settings,
    lean: LeanRecord,
    git: GitRecord | None,
) -> Path:
    """Makes the directory of a new run and its `run.json`; the id must be free."""
    runs = base / layout.RUNS
    hide_from_git(runs)
    require_free(base, run_id)
    directory = runs / (run_id or new_run_id(runs))
    create_in(directory, target, settings, lean, git)
    return directory


def require_free(base: Path, run_id: str | None) -> None:
    """Raises UsageError if a run cannot have this id."""
    if run_id and (base / layout.RUNS / validate_run_id(run_id) / layout.RUN).exists():
        raise UsageError(f"run {run_id!r} exists; continue it with --resume {run_id}")


def create_in(
    directory: Path, target: Target, settings: Settings, lean: LeanRecord, git: GitRecord | None
) -> None:
    """Writes the `run.json` of a new run, whose id is the name of the directory."""
    prepare(directory)
    record = RunRecord(
        format_version=FORMAT_VERSION,
        trace_version=TRACE_VERSION,
        run_id=directory.name,
        created_at=timestamp(),
        mode=settings.mode,
        target=target,
        settings=settings,
        seeds={"search": settings.seed},
        environment=RunEnvironment.here(),
        lean=lean,
        git=git,
    )
    write_run(directory / layout.RUN, record)


@contextlib.contextmanager
def opened(
    directory: Path, *, stale_seconds: float = DEFAULT_STALE_SECONDS, force: bool = False
) -> Iterator[ProofRun]:
    """Owns a run while it is open."""
    record = read_run(directory / layout.RUN)
    trace = directory / layout.TRACE
    lease = Lease.acquire(
        directory / layout.LEASE,
        stale_seconds=stale_seconds,
        force=force,
        after=journal.last_epoch(trace),
    )
    try:
        writer = TraceWriter(trace, lease.epoch, lease.check, lease.is_in_place)
        try:
            spent = UsageLog(directory / layout.USAGE)
            yield ProofRun(directory, record, read_trace(trace), writer, spent)
        finally:
            writer.close()
    finally:
        lease.release()


def copy_of(directory: Path, target: Target) -> Path | None:
    """Where the file with the proofs in it is kept."""
    return (
        directory / layout.PROVED / Path(target.path).name
        if isinstance(target, FileTarget)
        else None
    )


def proved_copy_of(directory: Path, target: Target) -> Path | None:
    """Where the file without what is partial is kept, if there is such a thing."""
    path = copy_of(directory, target)
    return path.with_suffix(".proved.lean") if path is not None else None


def write_in_place(directory: Path, result: RunResult) -> str | None:
    """Puts the proofs into the author's own file, if it is as it was; gives its path.

    What is partial is no proof, and stays out. None if nothing was proved.
    """
    target = read_run(directory / layout.RUN).target
    if not isinstance(target, FileTarget):
        raise UsageError("--in-place changes a file; this run has none")
    if result.proved_file is None:
        return None
    path = Path(target.path).resolve()  # a link stays one
    if path.read_bytes() != target.source.encode():
        raise UsageError(
            f"{path} has changed since the run began; the proofs are in {result.proved_file}"
        )
    mode = path.stat().st_mode
    atomic.write_bytes(path, Path(result.proved_file).read_bytes())
    path.chmod(mode)
    return target.path


def write_patch(directory: Path, result: RunResult, root: Path) -> Path | None:
    """The proofs of a file as a patch, for the directory `root`; None if nothing was proved."""
    target = read_run(directory / layout.RUN).target
    if not isinstance(target, FileTarget) or result.proved_file is None:
        return None
    name = Path(target.path).resolve().relative_to(root.resolve()).as_posix()
    patch = directory / layout.PATCH
    after = Path(result.proved_file).read_bytes().decode()
    atomic.write_bytes(patch, patch_of(name, target.source, after).encode())
    return patch


def read_result(directory: Path) -> RunResult | None:
    """What a run wrote down at its end; None before that."""
    try:
        data = (directory / layout.RESULT).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(data, type=RunResult)
    except msgspec.DecodeError as error:
        raise StorageError(f"{directory / layout.RESULT} is damaged: {error}") from None


def write_result(directory: Path, result: RunResult) -> None:
    data = msgspec.json.format(msgspec.json.encode(result), indent=2)
    atomic.write_bytes(directory / layout.RESULT, data + b"\n")


_GIT_SECONDS = 20


def git_record(directory: Path) -> GitRecord | None:
    """The commit and whether there are changes; None outside a repository or without git."""
    commit = _git(directory, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    return GitRecord(commit.strip(), bool(_git(directory, "status", "--porcelain")))


def lean_record(info: SessionInfo, modules: dict[str, str] | None = None) -> LeanRecord:
    return LeanRecord(info.backend, info.lean, info.detail, modules or {})


def modules_of(target: Target, project: Project | None) -> dict[str, str]:
    """The modules of its project that a file rests on, and the sha256 of their texts."""
    if project is None or not isinstance(target, FileTarget):
        return {}
    modules = project.modules_for(project.imports_of(target.source))
    return {module.name: module.source for module in modules}


def require_unchanged(record: RunRecord, modules: dict[str, str]) -> None:
    """Refuses to continue a run whose project means something else now."""
    before = record.lean.modules
    changed = [name for name in before | modules if before.get(name) != modules.get(name)]
    if changed:
        raise UsageError(f"{min(changed)} was edited since this run began; begin another one")


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            # Looking runs no program that the repository's configuration names.
            ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *arguments],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
