"""Where attempts run: beside the scheduler, or in worker processes of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from treewright.kernel.executors import registry
from treewright.kernel.executors.base import Done, Executor
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.scheduling.dispatch import Attempting
from treewright.orchestrator.workers.remote import RemoteAttempt, attempt_there
from treewright.orchestrator.workers.trying import AttemptRequest, Tried


@contextlib.contextmanager
def attempting(
    backend: str | None,
    cluster: str | None,
    config: OrchestratorConfig,
    project: Path | None = None,
) -> Iterator[Attempting]:
    """What schedulers need to run their attempts there; a cluster stays connected over them.

    `project` is the directory whose Lake project goals may import.
    Elsewhere, `lean_sessions` attempts are under way at once: as many as have a Lean session.
    """
    chosen = registry.choose(backend, cluster)
    if chosen.travels:
        stub = config.profile == 0
        with chosen.open(registry.Place(config.lean_sessions, cluster)) as make:
            there = str(project.resolve()) if project is not None else ""
            yield Attempting(
                lambda _work: _Packed(make(attempt_there), stub, there), elsewhere=True
            )
    else:
        capacity = 1 if chosen.single else config.attempts_at_once
        with chosen.open(registry.Place(capacity)) as make:
            yield Attempting(make)


class _Packed:
    """An executor of bytes as one of attempts."""

    def __init__(self, engine: Executor[bytes, bytes], stub: bool, project: str) -> None:
        self.capacity = engine.capacity
        self._engine = engine
        self._stub = stub
        self._project = project
        self._payloads: dict[int, bytes] = {}
        self._requests: dict[int, AttemptRequest] = {}

    def submit(self, request: AttemptRequest) -> None:
        payload = msgspec.msgpack.encode(RemoteAttempt(request, self._stub, self._project))
        self._payloads[id(request)] = payload
        self._requests[id(payload)] = request
        self._engine.submit(payload)

    def next_done(self, timeout: float | None = None) -> Done[AttemptRequest, Tried] | None:
        done = self._engine.next_done(timeout)
        if done is None:
            return None
        request = self._requests.pop(id(done.request))
        del self._payloads[id(request)]
        if done.outcome is None:
            return Done(request, None, done.error, done.worker)
        try:
            tried = msgspec.msgpack.decode(done.outcome, type=Tried)
        except msgspec.MsgspecError as error:
            return Done(request, None, error, done.worker)
        return Done(request, tried, worker=done.worker)

    def cancel(self, request: AttemptRequest) -> None:
        if (payload := self._payloads.get(id(request))) is not None:
            self._engine.cancel(payload)

    def close(self) -> None:
        self._engine.close()
