"""The worker's side of a remote evaluation, which shares no disk with the coordinator.

A task holds the request with all files that it names, and the parent's history as a git bundle or
the address of a remote. A result holds the outcome, the candidate's commit as a bundle, the results
and the logs. The work is done in a directory of the dask worker that is removed afterwards; if the
worker is killed, dask removes it when the next worker starts there.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from treewright.kernel.executors.dask_worker import (
    begin_once,
    check_version,
    stop_on_event,
    worker_name,
)
from treewright.kernel.procs import process
from treewright.kernel.storage import untrusted
from treewright.tree.evaluating.heldout import HeldoutOutcome, HeldoutRequest
from treewright.tree.evaluating.known_results import Known, SentResults
from treewright.tree.evaluating.remote_claims import AskedResults
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.evaluating.worker import Request, Worker
from treewright.tree.guard.isolation import in_a_copy
from treewright.tree.records import layout, usage_log
from treewright.tree.records.model import EvalOutcome
from treewright.tree.repository.git import GitError, command, environment, git

SENT = "refs/treewright/sent"


class RemoteTask(msgspec.Struct, frozen=True):
    """A request, and the source of the commits that it needs."""

    request: Request
    dry_run: bool
    remote_url: str | None
    cancel_event: str
    shallow: str = ""
    """The boundary commits of a shallow repository, one on each line."""
    known: SentResults = SentResults()
    asks: bool = False
    """Whether the coordinator answers claims to measure code."""


class RemoteResult(msgspec.Struct, frozen=True):
    """The result of an evaluation or of a held-out sweep; `files` is a tar of its logs."""

    outcome: EvalOutcome | None
    files: bytes
    results_csv: bytes | None
    bundle: bytes | None
    heldout: HeldoutOutcome | None = None


def evaluate_here(version: str, task: bytes, bundle: bytes) -> tuple[bytes, str, int]:
    """Execute a task on this dask worker; the version is checked before anything is decoded."""
    check_version(version)
    decoded = msgspec.msgpack.decode(task, type=RemoteTask)
    begin_once(mark(decoded.cancel_event, decoded.request))
    with (
        tempfile.TemporaryDirectory(prefix="treewright-", dir=_own_directory()) as directory,
        stop_on_event(decoded.cancel_event) as cancel,
        usage_log.reporting_to(_answer_reporter(decoded)),
    ):
        result = evaluate_in(Path(directory), decoded, bundle, cancel)
    return msgspec.msgpack.encode(result), worker_name(), os.getpid()


def mark(cancel_event: str, request: Request) -> str:
    """Return the name of an attempt, for the cluster's events and variables."""
    name = request.eval_id if isinstance(request, EvalRequest) else request.name
    return f"{cancel_event}-{name}-{request.attempt}"


def answers_topic(cancel_event: str) -> str:
    """Return the topic under which workers report model answers: their files may be lost."""
    return f"{cancel_event}-answers"


class ReportedAnswer(msgspec.Struct, frozen=True):
    """A model's answer in the attempt with this mark."""

    mark: str
    answer: usage_log.Answer


def _answer_reporter(task: RemoteTask) -> Callable[[usage_log.Answer], None]:
    import distributed

    here, topic = distributed.get_worker(), answers_topic(task.cancel_event)
    own = mark(task.cancel_event, task.request)
    return lambda answer: here.log_event(topic, msgspec.to_builtins(ReportedAnswer(own, answer)))


def _own_directory() -> str:
    import distributed

    return distributed.get_worker().local_directory


def evaluate_in(
    workspace: Path, task: RemoteTask, bundle: bytes, cancel: threading.Event
) -> RemoteResult:
    run_dir, repo = workspace / "run", workspace / "repo"
    sent = task.request
    config = in_a_copy(sent.config, Path(sent.repo), Path(sent.run_dir))
    request = msgspec.structs.replace(sent, repo=str(repo), run_dir=str(run_dir), config=config)
    run_dir.mkdir(parents=True)
    if not task.dry_run:
        _check_out(repo, task, bundle, cancel)
    known: Known = task.known
    if task.asks:
        known = AskedResults(task.known, task.cancel_event, mark(task.cancel_event, request))
    outcome = Worker(cancel, known=known, dry_run=task.dry_run)(request)
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
    kind = "sha256" if len(start_commit(request)) == 64 else "sha1"
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


def start_commit(request: Request) -> str:
    """Return the commit that a worker needs: an evaluation's parent, or the candidate."""
    return request.parent_commit if isinstance(request, EvalRequest) else request.commit


def start_ref(request: Request) -> str:
    """Return the branch of that commit on the coordinator's machine."""
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
