"""The executor for workers that share no disk with the coordinator: on dask, or of a plug-in.

The coordinator packs a request with all files that it names into a `Parcel` of bytes, and has any
executor of `kernel.executors` call `evaluate_parcel` on it somewhere else. It writes the files of a
result to where an evaluation on this machine would have left them.

What a worker had learned is lost with it: the model answers that it had paid for, and which code it
was measuring. Two workers that get the same code at the same time both measure it.
"""

from __future__ import annotations

import contextlib
import io
import logging
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import msgspec

import treewright
from treewright.kernel.errors import UsageError
from treewright.kernel.executors import backends
from treewright.kernel.executors.protocol import Done, Executor, WorkerLost
from treewright.kernel.procs.cancellation import Fence
from treewright.kernel.storage import artifacts, untrusted
from treewright.kernel.storage.artifacts import Artifact
from treewright.tree.evaluating.known_results import KnownResults, SentResults
from treewright.tree.evaluating.remote_worker import (
    SENT,
    Parcel,
    RemoteResult,
    RemoteTask,
    evaluate_parcel,
    start_ref,
)
from treewright.tree.evaluating.request import EvalRequest, HeldoutRequest, Outcome, Request
from treewright.tree.evaluating.worker import Work, Worker
from treewright.tree.records import layout
from treewright.tree.repository.git import GitError, git, try_git

_MOST_BUNDLES = 64
_TICK_SECONDS = 0.2
_log = logging.getLogger("treewright")


class RemoteExecutor:
    """Sends requests through another executor and unpacks the results.

    The history that requests start from is packed once for each branch, without the commits of a
    named git remote.

    Args:
        engine: Runs `evaluate_parcel` somewhere else.
        dry_run: Whether workers simulate.
        remote: A git remote that the workers can fetch from, if any, with its address.
        known: The results of the run; as many as fit are sent with each request.
        fence: Cancels every request when it is set, and guards the files of the run.
    """

    def __init__(
        self,
        engine: Executor[Parcel, bytes],
        *,
        dry_run: bool,
        remote: tuple[str, str] | None,
        known: KnownResults | None,
        fence: Fence,
    ) -> None:
        self.capacity = engine.capacity
        self._engine = engine
        self._dry_run = dry_run
        self._remote = remote
        self._known = known
        self._fence = fence
        self._out: dict[str, tuple[Request, Parcel]] = {}
        self._bundles: dict[str, bytes] = {}
        self._is_cancelled = False

    def submit(self, request: Request) -> None:
        task = RemoteTask(
            request=request,
            dry_run=self._dry_run,
            remote_url=self._remote[1] if self._remote else None,
            shallow=_shallow_boundary(Path(request.repo)),
            known=self._known.sent() if self._known is not None else SentResults(),
        )
        name = request.eval_id if isinstance(request, EvalRequest) else request.name
        parcel = Parcel(
            f"{name}-{request.attempt}",
            treewright.__version__,
            msgspec.msgpack.encode(task),
            b"" if self._dry_run else self._bundle(request),
        )
        self._out[parcel.name] = request, parcel
        self._engine.submit(parcel)

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._fence.is_set() and not self._is_cancelled:
                self._is_cancelled = True
                for _, parcel in self._out.values():
                    self._engine.cancel(parcel)
            left = _TICK_SECONDS if until is None else until - time.monotonic()
            done = self._engine.next_done(max(0.0, min(_TICK_SECONDS, left)))
            if done is not None:
                return self._received(done)
            if until is not None and time.monotonic() >= until:
                return None

    def cancel(self, request: Request) -> None:
        for mine, parcel in self._out.values():
            if mine is request:
                self._engine.cancel(parcel)

    def close(self) -> None:
        self._engine.close()

    def _received(self, done: Done[Parcel, bytes]) -> Done[Request, Outcome]:
        """Return a worker's reply as the completion of a request on this machine."""
        request, _ = self._out.pop(done.request.name)
        is_capped = isinstance(request, EvalRequest) and request.allowance is not None
        if is_capped and isinstance(done.error, WorkerLost) and not self._is_cancelled:
            _log.warning(
                "the worker of %s was lost: what this attempt has spent is unknown, and no cap "
                "counts it",
                request.eval_id,
            )
        if done.outcome is None:
            return Done(request, None, done.error, done.worker)
        try:
            result = msgspec.msgpack.decode(done.outcome, type=RemoteResult)
            return Done(request, receive(request, result, self._fence), worker=done.worker)
        except Exception as problem:
            return Done(request, None, problem, done.worker)

    def _bundle(self, request: Request) -> bytes:
        ref = start_ref(request)
        if ref not in self._bundles:
            if len(self._bundles) >= _MOST_BUNDLES:
                del self._bundles[next(iter(self._bundles))]
            self._bundles[ref] = _pack(request, self._remote[0] if self._remote else None)
        return self._bundles[ref]


@contextlib.contextmanager
def remote_executor(
    backend: backends.Backend,
    options: backends.ExecutorOptions,
    *,
    repo: Path,
    dry_run: bool,
    remote: str | None,
    fence: Fence,
) -> Iterator[Callable[[Work], RemoteExecutor]]:
    """Open the backend and yield a function that makes executors.

    Raises:
        UsageError: The repository has no git remote of the name `remote`.
    """
    named = (remote, remote_url(repo, remote)) if remote else None
    with backend.open(options) as make:

        def executor(work: Work) -> RemoteExecutor:
            known = work.known if isinstance(work, Worker) else None
            return RemoteExecutor(
                make(evaluate_parcel),
                dry_run=dry_run,
                remote=named,
                known=known if isinstance(known, KnownResults) else None,
                fence=fence,
            )

        yield executor


def remote_url(repo: Path, remote: str) -> str:
    found = try_git(repo, "remote", "get-url", remote)
    if found.returncode != 0:
        raise UsageError(
            f"--cluster-remote: {repo} has no git remote {remote!r}; see `git remote -v`"
        )
    return found.stdout.strip()


def _shallow_boundary(repo: Path) -> str:
    path = repo / git(repo, "rev-parse", "--git-path", "shallow").rstrip("\n")
    return path.read_text() if path.is_file() else ""


def _pack(request: Request, remote: str | None) -> bytes:
    repo = Path(request.repo)
    known = ("--not", f"--remotes={remote}") if remote else ()
    with tempfile.TemporaryDirectory(prefix="treewright-bundle-") as directory:
        path = str(Path(directory) / "parent.bundle")
        made = try_git(repo, "bundle", "create", "-q", path, start_ref(request), *known)
        if made.returncode == 0:
            return Path(path).read_bytes()
    if "empty bundle" in made.stderr:
        return b""
    raise GitError(f"cannot pack {start_ref(request)}: {made.stderr.strip()}")


def receive(request: Request, result: RemoteResult, fence: Fence) -> Outcome:
    """Write a worker's files to where the same work on this machine would have left them.

    The fence is checked before each write: the run may have another owner by now.
    """
    run_dir = Path(request.run_dir)
    fence.check()
    if isinstance(request, HeldoutRequest):
        assert result.heldout is not None
        with tarfile.open(fileobj=io.BytesIO(result.files)) as tar:
            _unpack(tar, run_dir / request.log_dir)
        kept = result.heldout.results
        if kept is not None:
            fence.check()
            _keep(run_dir, kept.artifact, kept.data, request.eval_id)
        return result.heldout
    assert result.outcome is not None
    experiment = run_dir / layout.experiment(request.eval_id)
    untrusted.remove_tree(experiment)
    experiment.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(result.files)) as tar:
        _unpack(tar, experiment)
    recorded = result.outcome.results_csv
    if recorded is not None and result.results_csv is not None:
        fence.check()
        _keep(run_dir, recorded, result.results_csv, request.eval_id)
    if result.bundle is not None:
        with tempfile.TemporaryDirectory(prefix="treewright-bundle-") as directory:
            path = Path(directory) / "candidate.bundle"
            path.write_bytes(result.bundle)
            branch = layout.candidate_ref(request.tree_run_id, request.eval_id)
            fence.check()
            git(Path(request.repo), "fetch", "-q", "--force", str(path), f"{SENT}:{branch}")
    return result.outcome


def _keep(run_dir: Path, recorded: Artifact, data: bytes, eval_id: str) -> None:
    kept = artifacts.keep(data, run_dir, Path(recorded.path).name, recorded.source)
    if kept.sha256 != recorded.sha256:
        raise OSError(f"the results of {eval_id} changed in transport")


def _unpack(tar: tarfile.TarFile, directory: Path) -> None:
    """Unpack plain files and directories below `directory`; anything else is an OSError.

    Early versions of Python 3.11 have no filters in `tarfile`.
    """
    for entry in tar:
        name = PurePosixPath(entry.name)
        if name.is_absolute() or ".." in name.parts or not (entry.isreg() or entry.isdir()):
            raise OSError(f"a worker sent {entry.name!r}, which is not a plain file")
        path = directory / name
        if entry.isdir():
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        content = tar.extractfile(entry)
        assert content is not None
        untrusted.remove_tree(path)  # of an earlier try
        with content, path.open("xb") as file:
            shutil.copyfileobj(content, file)
