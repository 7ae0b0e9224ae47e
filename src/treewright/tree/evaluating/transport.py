"""Requests and results as bytes, for machines that share no disk with the coordinator.

The coordinator packs a request with all files that it names, and writes the files of a result to
where an evaluation on this machine would have left them. `remote_worker` is the worker's side.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.executors.protocol import Done, Worker
from treewright.kernel.procs.cancellation import Fence
from treewright.kernel.storage import artifacts, untrusted
from treewright.kernel.storage.artifacts import Artifact
from treewright.tree.evaluating.heldout import HeldoutRequest
from treewright.tree.evaluating.known_results import KnownResults, SentResults
from treewright.tree.evaluating.remote_worker import SENT, RemoteResult, RemoteTask, start_ref
from treewright.tree.evaluating.worker import Outcome, Request
from treewright.tree.evaluating.worker import Worker as EvaluationWorker
from treewright.tree.records import layout
from treewright.tree.repository.git import GitError, git, try_git

_MOST_BUNDLES = 64


class Packer:
    """Packs requests with the git history that they start from.

    The history is packed once for each branch, without the commits of a named git remote. `keep`
    may store it where all workers find it.
    """

    def __init__(
        self,
        *,
        dry_run: bool,
        remote: str | None,
        remote_url: str | None,
        cancel_event: str = "",
        keep: Callable[[bytes], Any] = lambda data: data,
        work: object = None,
    ) -> None:
        self._dry_run = dry_run
        self._remote = remote
        self._remote_url = remote_url
        self._cancel_event = cancel_event
        self._keep = keep
        known = work.known if isinstance(work, EvaluationWorker) else None
        self.known = known if isinstance(known, KnownResults) else None
        self._bundles: dict[str, Any] = {}

    def pack(self, request: Request) -> tuple[bytes, Any]:
        """Return the task as bytes, and its bundle as returned by `keep`."""
        task = RemoteTask(
            request=request,
            dry_run=self._dry_run,
            remote_url=self._remote_url,
            cancel_event=self._cancel_event,
            shallow=_shallow_boundary(Path(request.repo)),
            known=self.known.sent() if self.known is not None else SentResults(),
            asks=self.known is not None and bool(self._cancel_event),
        )
        return msgspec.msgpack.encode(task), b"" if self._dry_run else self._bundle(request)

    def clear(self) -> None:
        self._bundles.clear()

    def _bundle(self, request: Request) -> Any:
        ref = start_ref(request)
        if ref not in self._bundles:
            kept = self._keep(_pack(request, self._remote))
            if len(self._bundles) >= _MOST_BUNDLES:
                del self._bundles[next(iter(self._bundles))]
            self._bundles[ref] = kept
        return self._bundles[ref]


def remote_url(repo: Path, remote: str) -> str:
    found = try_git(repo, "remote", "get-url", remote)
    if found.returncode != 0:
        raise UsageError(
            f"--cluster-remote: {repo} has no git remote {remote!r}; see `git remote -v`"
        )
    return found.stdout.strip()


def received(
    request: Request,
    data: bytes | None,
    error: BaseException | None,
    worker: Worker | None,
    fence: Fence,
) -> Done[Request, Outcome]:
    """Return a worker's reply as the completion of a request on this machine."""
    if data is None:
        return Done(request, None, error, worker)
    try:
        result = msgspec.msgpack.decode(data, type=RemoteResult)
        return Done(request, receive(request, result, fence), worker=worker)
    except Exception as problem:
        return Done(request, None, problem, worker)


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
