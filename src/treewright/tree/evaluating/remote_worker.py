"""The worker's side of a remote evaluation, which shares no disk with the coordinator.

A task holds the request with all files that it names, and the parent's history as a git bundle or
the address of a remote. A result holds the outcome, the candidate's commit as a bundle, the results
and the logs. The work is done in a temporary directory, on dask in the directory of the worker; if
the worker is killed, dask removes it when the next worker starts there.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tarfile
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.executors.dask_worker import check_version
from treewright.kernel.executors.protocol import current_stop
from treewright.kernel.procs import process
from treewright.kernel.storage import untrusted
from treewright.tree.evaluating.known_results import SentResults
from treewright.tree.evaluating.request import (
    EvalRequest,
    HeldoutOutcome,
    HeldoutRequest,
    Request,
)
from treewright.tree.evaluating.worker import Worker
from treewright.tree.guard.isolation import in_a_copy
from treewright.tree.records import layout
from treewright.tree.records.model import EvalOutcome
from treewright.tree.repository.git import GitError, command, environment, git

SENT = "refs/treewright/sent"


class RemoteTask(msgspec.Struct, frozen=True):
    """A request, and the source of the commits that it needs."""

    request: Request
    dry_run: bool
    remote_url: str | None
    shallow: str = ""
    """The boundary commits of a shallow repository, one on each line."""
    known: SentResults = SentResults()


class RemoteResult(msgspec.Struct, frozen=True):
    """The result of an evaluation or of a held-out sweep; `files` is a tar of its logs."""

    outcome: EvalOutcome | None
    files: bytes
    results_csv: bytes | None
    bundle: bytes | None
    heldout: HeldoutOutcome | None = None


@dataclass(frozen=True, slots=True)
class Parcel:
    """A request with everything that it depends on; `name` is unique among those under way."""

    name: str
    version: str
    task: bytes
    bundle: bytes


def evaluate_parcel(parcel: Parcel) -> bytes:
    """Execute a parcel in a temporary directory; the version is checked before decoding."""
    check_version(parcel.version)
    task = msgspec.msgpack.decode(parcel.task, type=RemoteTask)
    parent = None
    if (distributed := sys.modules.get("distributed")) is not None:
        with contextlib.suppress(ValueError):  # not on a dask worker
            parent = distributed.get_worker().local_directory
    with tempfile.TemporaryDirectory(prefix="treewright-", dir=parent) as directory:
        result = _evaluate(Path(directory), task, parcel.bundle, current_stop())
    return msgspec.msgpack.encode(result)


def _evaluate(
    workspace: Path, task: RemoteTask, bundle: bytes, cancel: threading.Event
) -> RemoteResult:
    run_dir, repo = workspace / "run", workspace / "repo"
    sent = task.request
    config = in_a_copy(sent.config, Path(sent.repo), Path(sent.run_dir))
    request = msgspec.structs.replace(sent, repo=str(repo), run_dir=str(run_dir), config=config)
    run_dir.mkdir(parents=True)
    if not task.dry_run:
        _check_out(repo, task, bundle, cancel)
    outcome = Worker(cancel, known=task.known, dry_run=task.dry_run)(request)
    if isinstance(request, HeldoutRequest):
        assert isinstance(outcome, HeldoutOutcome)
        logs = run_dir / request.log_dir
        logs.mkdir(parents=True, exist_ok=True)
        return RemoteResult(None, _tar(logs), None, None, outcome)
    assert isinstance(outcome, EvalOutcome)
    results = outcome.results_csv
    return RemoteResult(
        outcome=outcome,
        files=_tar(run_dir / layout.experiment(request.eval_id)),
        results_csv=(run_dir / results.path).read_bytes() if results is not None else None,
        bundle=None if task.dry_run else _candidate_bundle(repo, run_dir, request, outcome),
    )


def _check_out(repo: Path, task: RemoteTask, bundle: bytes, cancel: threading.Event) -> None:
    """Make a repository with the needed commits and check the root out.

    Prompts and scripts of the configuration are read there, as on the coordinator's machine.
    """
    request = task.request
    repo.mkdir()
    kind = "sha256" if len(request.root_commit) == 64 else "sha1"
    git(repo, "init", "-q", f"--object-format={kind}")
    if task.shallow:  # git refuses a bundle without the parents of its commits
        (repo / ".git" / "shallow").write_text(task.shallow)
    if task.remote_url is not None:
        _fetch_remote(repo, task.remote_url, request, cancel)
    if bundle:
        path = repo.with_name("parent.bundle")
        path.write_bytes(bundle)
        git(repo, "fetch", "-q", str(path), f"{start_ref(request)}:{SENT}")
        path.unlink()
    git(repo, "checkout", "-q", "--detach", request.root_commit)


def _fetch_remote(repo: Path, url: str, request: Request, cancel: threading.Event) -> None:
    """Fetch from the remote; the fetch can be cancelled and times out."""
    log = repo.with_name("fetch.log")
    done = process.run(
        command("fetch", "-q", url, "+refs/heads/*:refs/remotes/source/*"),
        cwd=repo,
        env=environment(),
        log_path=log,
        timeout=request.timeout_seconds if isinstance(request, EvalRequest) else None,
        cancel=cancel,
        owner=request.owner,
    )
    if not done.ok:
        said = log.read_text(errors="replace").strip().splitlines()
        reason = said[-1] if said else done.explain("git fetch")
        raise GitError(f"a worker cannot fetch from the remote given by --cluster-remote: {reason}")


def start_ref(request: Request) -> str:
    """Return the coordinator's branch with the commit that a worker starts from."""
    if isinstance(request, HeldoutRequest):
        return layout.candidate_ref(request.tree_run_id, request.eval_id)
    return layout.node_ref(request.tree_run_id, request.parent_node_id)


def _candidate_bundle(
    repo: Path, run_dir: Path, request: EvalRequest, outcome: EvalOutcome
) -> bytes | None:
    if outcome.candidate_commit is None:
        return None
    git(repo, "update-ref", SENT, outcome.candidate_commit)
    path = run_dir / "candidate.bundle"
    git(repo, "bundle", "create", "-q", str(path), SENT, "--not", request.parent_commit)
    return path.read_bytes()


def _tar(directory: Path) -> bytes:
    """Return a tar of the plain files in a directory; files too large for a log are left out."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as tar:
        for path in sorted(directory.iterdir()):
            tar.add(path, arcname=path.name, filter=_plain)
    return buffer.getvalue()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    believable = entry.isreg() and entry.size <= untrusted.LARGEST_TEXT
    return entry if believable or entry.isdir() else None
