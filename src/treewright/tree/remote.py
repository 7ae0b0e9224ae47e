"""Evaluations on machines that share no disk with the coordinator.

There: a git bundle with the parent's history, the idea, the two baselines. Back: the
outcome, the candidate's commit as a bundle, the results CSV, the logs. A worker does
all its work in a directory of its own and removes it.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import socket
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

import treewright
from treewright.kernel import artifacts
from treewright.kernel.executors.base import Done
from treewright.kernel.executors.dask import DaskExecutor, connect
from treewright.tree.evaluation import EvalRequest, Evaluator
from treewright.tree.git import GitError, attempt, git
from treewright.tree.model import EvalOutcome
from treewright.tree.simulation import simulate
from treewright.tree.worktrees import Worktrees

_POLL_SECONDS = 0.5
_SENT = "refs/treewright/sent"


class RemoteTask(msgspec.Struct, frozen=True):
    """A request with the bytes of everything it names."""

    request: EvalRequest
    version: str
    dry_run: bool
    idea: bytes
    parent_baseline: bytes
    root_baseline: bytes
    bundle: bytes | None
    remote_url: str | None
    cancel_event: str


class RemoteResult(msgspec.Struct, frozen=True):
    """What comes back. `files` is a tar of the experiment directory."""

    outcome: EvalOutcome
    files: bytes
    results_csv: bytes | None
    bundle: bytes | None


class RemoteExecutor:
    """The coordinator's side: packs requests, unpacks results, through a dask client."""

    def __init__(
        self, client, capacity: int, *, dry_run: bool, remote: str | None, cancel_event: str
    ) -> None:
        self.capacity = capacity
        self._engine: DaskExecutor[RemoteTask, RemoteResult] = DaskExecutor(
            client, evaluate_here, capacity
        )
        self._dry_run = dry_run
        self._remote = remote
        self._cancel_event = cancel_event
        self._bundles: dict[str, bytes] = {}

    def submit(self, request: EvalRequest) -> None:
        run_dir = Path(request.run_dir)
        self._engine.submit(
            RemoteTask(
                request=request,
                version=treewright.__version__,
                dry_run=self._dry_run,
                idea=(run_dir / request.idea_path).read_bytes(),
                parent_baseline=Path(request.parent_baseline).read_bytes(),
                root_baseline=Path(request.root_baseline).read_bytes(),
                bundle=None if self._dry_run else self._bundle(request),
                remote_url=self._remote_url(request),
                cancel_event=self._cancel_event,
            )
        )

    def _remote_url(self, request: EvalRequest) -> str | None:
        if self._remote is None:
            return None
        return git(Path(request.repo), "remote", "get-url", self._remote).strip()

    def next_done(self, timeout: float | None = None) -> Done[EvalRequest, EvalOutcome] | None:
        done = self._engine.next_done(timeout)
        if done is None:
            return None
        request = done.request.request
        if done.outcome is None:
            return Done(request, None, done.error, done.worker)
        try:
            return Done(request, receive(request, done.outcome), worker=done.worker)
        except Exception as error:
            return Done(request, None, error, done.worker)

    def close(self) -> None:
        self._engine.close()

    def _bundle(self, request: EvalRequest) -> bytes:
        """The parent's history, less what the named remote has; made once a parent."""
        if request.parent_commit not in self._bundles:
            repo = Path(request.repo)
            known = ("--not", f"--remotes={self._remote}") if self._remote else ()
            with tempfile.TemporaryDirectory(prefix="treewright-bundle-") as directory:
                path = str(Path(directory) / "parent.bundle")
                made = attempt(repo, "bundle", "create", "-q", path, _parent_ref(request), *known)
                if made.returncode == 0:
                    self._bundles[request.parent_commit] = Path(path).read_bytes()
                elif "empty bundle" in made.stderr:
                    self._bundles[request.parent_commit] = b""
                else:
                    raise GitError(f"cannot pack {request.parent_node_id}: {made.stderr.strip()}")
        return self._bundles[request.parent_commit]


def _parent_ref(request: EvalRequest) -> str:
    trees = Worktrees(Path(request.repo), Path(request.run_dir), request.tree_run_id)
    return trees.node_ref(request.parent_node_id)


def receive(request: EvalRequest, result: RemoteResult) -> EvalOutcome:
    """Puts what a worker sent where a local evaluation would have left it."""
    run_dir = Path(request.run_dir)
    experiment = run_dir / "eval" / request.eval_id / "experiment"
    shutil.rmtree(experiment, ignore_errors=True)
    experiment.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(result.files)) as tar:
        tar.extractall(experiment, filter="data")
    recorded = result.outcome.results_csv
    if recorded is not None and result.results_csv is not None:
        arrived = experiment / "arrived_results.csv"
        arrived.write_bytes(result.results_csv)
        name = Path(recorded.path).name
        kept = artifacts.keep(arrived, run_dir, name, recorded.source)
        arrived.unlink()
        if kept.sha256 != recorded.sha256:
            raise OSError(f"the results of {request.eval_id} changed on their way")
    if result.bundle is not None:
        with tempfile.TemporaryDirectory(prefix="treewright-bundle-") as directory:
            path = Path(directory) / "candidate.bundle"
            path.write_bytes(result.bundle)
            branch = f"refs/heads/treewright/{request.tree_run_id}/cand/{request.eval_id}"
            git(Path(request.repo), "fetch", "-q", "--force", str(path), f"{_SENT}:{branch}")
    return result.outcome


def evaluate_here(task: RemoteTask) -> tuple[RemoteResult, str, int]:
    """The worker's side."""
    if task.version != treewright.__version__:
        raise RuntimeError(
            f"this worker has treewright {treewright.__version__}, the coordinator {task.version}; "
            "install the same version on both"
        )
    name = f"{socket.gethostname()}:{os.getpid()}"
    with (
        tempfile.TemporaryDirectory(prefix="treewright-worker-") as directory,
        _watching(task.cancel_event) as cancel,
    ):
        return _evaluate_in(Path(directory), task, cancel), name, os.getpid()


def _evaluate_in(workspace: Path, task: RemoteTask, cancel: threading.Event) -> RemoteResult:
    run_dir, repo = workspace / "run", workspace / "repo"
    request = msgspec.structs.replace(
        task.request,
        repo=str(repo),
        run_dir=str(run_dir),
        parent_baseline=str(run_dir / "parent_baseline.csv"),
        root_baseline=str(run_dir / "root_baseline.csv"),
    )
    idea = run_dir / request.idea_path
    idea.parent.mkdir(parents=True)
    idea.write_bytes(task.idea)
    Path(request.parent_baseline).write_bytes(task.parent_baseline)
    Path(request.root_baseline).write_bytes(task.root_baseline)
    if task.dry_run:
        outcome = simulate(request)
    else:
        _check_out(repo, task, workspace)
        outcome = Evaluator(cancel)(request)
    results = outcome.results_csv
    return RemoteResult(
        outcome=outcome,
        files=_tar(run_dir / "eval" / request.eval_id / "experiment"),
        results_csv=(run_dir / results.path).read_bytes() if results is not None else None,
        bundle=None if task.dry_run else _candidate_bundle(repo, run_dir, request, outcome),
    )


def _check_out(repo: Path, task: RemoteTask, workspace: Path) -> None:
    repo.mkdir()
    git(repo, "init", "-q")
    if task.remote_url is not None:
        git(repo, "fetch", "-q", task.remote_url, "+refs/heads/*:refs/remotes/source/*")
    if task.bundle:
        bundle = workspace / "parent.bundle"
        bundle.write_bytes(task.bundle)
        git(repo, "fetch", "-q", str(bundle), f"{_parent_ref(task.request)}:{_SENT}")
    git(repo, "checkout", "-q", "--detach", task.request.parent_commit)


def _candidate_bundle(
    repo: Path, run_dir: Path, request: EvalRequest, outcome: EvalOutcome
) -> bytes | None:
    if outcome.candidate_commit is None:
        return None
    git(repo, "update-ref", _SENT, outcome.candidate_commit)
    path = run_dir / "candidate.bundle"
    git(repo, "bundle", "create", "-q", str(path), _SENT, "--not", request.parent_commit)
    Worktrees(repo, run_dir, request.tree_run_id).remove_candidate(request.eval_id)
    return path.read_bytes()


def _tar(directory: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for path in sorted(directory.iterdir()):
            tar.add(path, arcname=path.name)
    return buffer.getvalue()


@contextlib.contextmanager
def _watching(event_name: str) -> Iterator[threading.Event]:
    """A local event that is set when the coordinator sets the cluster's."""
    import distributed

    cancel, finished = threading.Event(), threading.Event()
    remote = distributed.Event(event_name, client=distributed.get_client())

    def watch() -> None:
        while not finished.wait(_POLL_SECONDS):
            with contextlib.suppress(Exception):
                if remote.is_set():
                    cancel.set()
                    return

    threading.Thread(target=watch, name="cancel-watch", daemon=True).start()
    try:
        yield cancel
    finally:
        finished.set()


@contextlib.contextmanager
def cluster_executor(
    address: str | None,
    capacity: int,
    *,
    directory: str,
    dry_run: bool,
    remote: str | None,
    cancel: threading.Event,
    event_name: str,
) -> Iterator[Callable[[object], RemoteExecutor]]:
    """Connects, and yields what makes the executors of a run's depths."""
    with connect(address, capacity, directory) as client:
        import distributed

        event = distributed.Event(event_name, client=client)
        finished = threading.Event()

        def forward() -> None:
            while not finished.is_set():
                if cancel.wait(_POLL_SECONDS):
                    event.set()
                    return

        threading.Thread(target=forward, name="cancel-forward", daemon=True).start()
        try:
            yield lambda _work: RemoteExecutor(
                client, capacity, dry_run=dry_run, remote=remote, cancel_event=event_name
            )
        finally:
            finished.set()
