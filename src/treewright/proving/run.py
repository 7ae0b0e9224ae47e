"""A proof run on disk: `run.json`, `trace.jsonl`, `result.json`, its lease, and its provenance."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

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
from treewright.proving.records import GoalResult, TraceLine
from treewright.proving.settings import (
    FORMAT_VERSION,
    TRACE_VERSION,
    FileTarget,
    GitRecord,
    LeanRecord,
    RunRecord,
    Settings,
    Target,
    encode_document,
    read_run,
)
from treewright.proving.trace import TraceWriter, read_trace


class RunResult(msgspec.Struct, frozen=True):
    """The content of `result.json`, and of `prove --json`.

    `left_alone` are declarations with a `sorry` that an error in the file concerns. `file` is the
    copy of the file with every script that closes its goal, `proved_file` the copy with proofs
    only: its text goes into the user's own file. `answers` and `usage` are those of the model, over
    all processes of the run; `usage` is None without a model.
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
    """An open run.

    `lines` were written by earlier processes; `spent` is the usage of the model so far.
    """

    directory: Path
    record: RunRecord
    lines: list[TraceLine]
    writer: TraceWriter
    spent: UsageLog


def last_results(lines: Iterable[TraceLine]) -> dict[int, GoalResult]:
    """Return the last recorded result of each goal."""
    return {line.goal: line for line in lines if isinstance(line, GoalResult)}


def find_run(run: str, base: Path) -> Path:
    """Return the directory of a run, given its id below `base` or its path. Raises UsageError."""
    path = Path(run)
    if (path / layout.RUN).is_file():
        return path
    directory = base / layout.RUNS / validate_run_id(path.name if path.parent != Path(".") else run)
    if not (directory / layout.RUN).is_file():
        raise UsageError(f"there is no proof run {run!r} under {base / layout.RUNS}")
    return directory


def new_directory(base: Path, run_id: str | None) -> Path:
    """Return the directory for a new run, with an id of its own if none is given.

    Raises UsageError if the id is taken.
    """
    runs = base / layout.RUNS
    hide_from_git(runs)
    require_free(base, run_id)
    return runs / (run_id or new_run_id(runs))


def require_free(base: Path, run_id: str | None) -> None:
    """Raise UsageError if there is a run with this id."""
    if run_id and (base / layout.RUNS / validate_run_id(run_id) / layout.RUN).exists():
        raise UsageError(f"run {run_id!r} exists; continue it with --resume {run_id}")


def create(
    directory: Path, target: Target, settings: Settings, lean: LeanRecord, git: GitRecord | None
) -> None:
    """Create the directory and the `run.json` of a new run; its id is the directory's name."""
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
    atomic.write_bytes(directory / layout.RUN, encode_document(record))


@contextlib.contextmanager
def open_run(
    directory: Path, *, stale_seconds: float = DEFAULT_STALE_SECONDS, force: bool = False
) -> Iterator[ProofRun]:
    """Open a run and own it until the block ends."""
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


def scripts_path(directory: Path, target: Target) -> Path | None:
    """Return the path of the copy of the file with the scripts in it; None for a statement."""
    return (
        directory / layout.PROVED / Path(target.path).name
        if isinstance(target, FileTarget)
        else None
    )


def proofs_path(directory: Path, target: Target) -> Path | None:
    """Return the path of the copy with proofs only, which exists if another goal is partial."""
    path = scripts_path(directory, target)
    return path.with_suffix(".proved.lean") if path is not None else None


def write_in_place(directory: Path, result: RunResult) -> str | None:
    """Put the proofs into the user's own file and return its path; None if nothing was proved.

    Partial scripts are no proofs, and are left out.

    Raises:
        UsageError: The run has no file, or the file has changed since the run began.
    """
    target = read_run(directory / layout.RUN).target
    if not isinstance(target, FileTarget):
        raise UsageError("--in-place changes a file; this run has none")
    if result.proved_file is None:
        return None
    path = Path(target.path).resolve()  # a symbolic link stays a link
    if path.read_bytes() != target.source.encode():
        raise UsageError(
            f"{path} has changed since the run began; the proofs are in {result.proved_file}"
        )
    mode = path.stat().st_mode
    atomic.write_bytes(path, Path(result.proved_file).read_bytes())
    path.chmod(mode)
    return target.path


def write_patch(directory: Path, result: RunResult, root: Path) -> Path | None:
    """Write the proofs of a file as a patch for `root`; None if nothing was proved."""
    target = read_run(directory / layout.RUN).target
    if not isinstance(target, FileTarget) or result.proved_file is None:
        return None
    name = Path(target.path).resolve().relative_to(root.resolve()).as_posix()
    patch = directory / layout.PATCH
    after = Path(result.proved_file).read_bytes().decode()
    atomic.write_bytes(patch, patch_of(name, target.source, after).encode())
    return patch


def read_result(directory: Path) -> RunResult | None:
    """Return the content of `result.json`; None if there is no such file yet."""
    try:
        data = (directory / layout.RESULT).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(data, type=RunResult)
    except msgspec.DecodeError as error:
        raise StorageError(f"{directory / layout.RESULT} is damaged: {error}") from None


def write_result(directory: Path, result: RunResult) -> None:
    """Write `result.json`."""
    atomic.write_bytes(directory / layout.RESULT, encode_document(result))


_GIT_SECONDS = 20


def read_git_record(directory: Path) -> GitRecord | None:
    """Return the commit and whether there are changes; None outside a repository or without git."""
    commit = _git(directory, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    return GitRecord(commit.strip(), bool(_git(directory, "status", "--porcelain")))


def make_lean_record(info: SessionInfo, modules: dict[str, str] | None = None) -> LeanRecord:
    """Return the record of a session's Lean and of the project's modules that a file imports."""
    return LeanRecord(info.backend, info.lean, info.detail, modules or {})


def imported_modules(target: Target, project: Project | None) -> dict[str, str]:
    """Return the project modules that a file imports, with the sha256 of their texts."""
    if project is None or not isinstance(target, FileTarget):
        return {}
    modules = project.modules_for(project.imports_of(target.source))
    return {module.name: module.source for module in modules}


def require_unchanged(record: RunRecord, modules: dict[str, str]) -> None:
    """Raise UsageError if a project module was edited since the run began."""
    before = record.lean.modules
    changed = [name for name in before | modules if before.get(name) != modules.get(name)]
    if changed:
        raise UsageError(f"{min(changed)} was edited since this run began; start a new run")


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            # These options keep git from running programs that the repository's configuration
            # names.
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
