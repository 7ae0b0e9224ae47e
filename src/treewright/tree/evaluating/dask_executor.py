"""The executor for evaluations on a dask cluster."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

import treewright
from treewright.kernel.executors.dask import FunctionExecutor, check_workers, clear_event, connect
from treewright.kernel.executors.protocol import Done, WorkerLost
from treewright.kernel.procs.cancellation import Fence
from treewright.tree.evaluating.remote_claims import ClaimServer
from treewright.tree.evaluating.remote_worker import (
    ReportedAnswer,
    answers_topic,
    evaluate_here,
    mark,
)
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.evaluating.transport import Packer, received, remote_url
from treewright.tree.evaluating.worker import EvaluationLost, Outcome, Request
from treewright.tree.records import usage_log

_POLL_SECONDS = 0.2
_SCATTERED_BYTES = 1 << 20


class RemoteExecutor:
    """Sends requests to a dask cluster and unpacks the results; serves one scheduler."""

    def __init__(
        self,
        client: Any,
        capacity: int,
        *,
        dry_run: bool,
        remote: str | None,
        remote_url: str | None,
        cancel: Fence,
        cancel_event: str,
        work: object = None,
    ) -> None:
        self.capacity = capacity
        self._client = client
        self._engine: FunctionExecutor[Request, bytes] = FunctionExecutor(client, capacity, cancel)
        self._packer = Packer(
            dry_run=dry_run,
            remote=remote,
            remote_url=remote_url,
            cancel_event=cancel_event,
            keep=self._scatter,
            work=work,
        )
        self._fence = cancel
        self._cancel_event = cancel_event
        known = self._packer.known
        self._claims = ClaimServer(client, cancel_event, known) if known is not None else None

    def submit(self, request: Request) -> None:
        task, bundle = self._packer.pack(request)
        self._engine.submit(request, evaluate_here, treewright.__version__, task, bundle)

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        done = self._engine.next_done(timeout)
        if done is None:
            return None
        request = done.request
        if isinstance(done.error, WorkerLost):
            self._packer.clear()  # the only copy of a bundle may have been on that worker
            self._end_claim(request)
            return Done(request, None, EvaluationLost(str(done.error), self._answers(request)))
        self._forget(request)
        return received(request, done.outcome, done.error, done.worker, self._fence)

    def cancel(self, request: Request) -> None:
        """Cancel a request that no worker has; running evaluations are ended by the fence."""
        self._engine.cancel(request)

    def close(self) -> None:
        self._engine.close()
        if self._claims is not None:
            self._claims.close()

    def _forget(self, request: Request) -> None:
        clear_event(self._client, mark(self._cancel_event, request))
        self._end_claim(request)

    def _end_claim(self, request: Request) -> None:
        if self._claims is not None and isinstance(request, EvalRequest):
            self._claims.forget(mark(self._cancel_event, request))

    def _answers(self, request: Request) -> list[usage_log.Answer]:
        """Return the model answers that a lost worker had reported for a request."""
        own, topic = mark(self._cancel_event, request), answers_topic(self._cancel_event)
        with contextlib.suppress(Exception):  # the cluster itself may be lost
            told = [
                msgspec.convert(found, type=ReportedAnswer)
                for _, found in self._client.get_events(topic)
            ]
            return [each.answer for each in told if each.mark == own]
        return []

    def _scatter(self, data: bytes) -> Any:
        """Send a large bundle to the cluster once instead of with each task."""
        if len(data) > _SCATTERED_BYTES:
            with contextlib.suppress(TimeoutError):  # no worker is there yet to hold it
                return self._client.scatter(data, hash=False, timeout=5)
        return data


@contextlib.contextmanager
def cluster_executor(
    address: str | None,
    capacity: int,
    *,
    repo: Path,
    directory: Path,
    dry_run: bool,
    remote: str | None,
    cancel: Fence,
    event_name: str,
) -> Iterator[Callable[[object], RemoteExecutor]]:
    """Connect to a cluster and yield a function that makes executors."""
    url = remote_url(repo, remote) if remote else None
    with connect(address, capacity, str(directory)) as client:
        import distributed

        if address is not None:
            check_workers(client, address, capacity, "evaluations")
        event = distributed.Event(event_name, client=client)
        with _forwarding(cancel, event):
            make = functools.partial(
                RemoteExecutor,
                client,
                capacity,
                dry_run=dry_run,
                remote=remote,
                remote_url=url,
                cancel=cancel,
                cancel_event=event_name,
            )
            yield lambda work: make(work=work)


@contextlib.contextmanager
def _forwarding(cancel: Fence, event: Any) -> Iterator[None]:
    """Forward a cancellation to the cluster while the block runs."""
    finished = threading.Event()

    def forward() -> None:
        while not finished.is_set():
            if cancel.wait(_POLL_SECONDS):
                with contextlib.suppress(Exception):  # the cluster itself may be lost
                    event.set()
                return

    threading.Thread(target=forward, name="cancel-forward", daemon=True).start()
    try:
        yield
    finally:
        finished.set()
