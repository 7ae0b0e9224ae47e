"""Claims of cluster workers to measure code, so that the same code is not measured twice at once.

A worker reports to the coordinator which code it is about to measure, and waits for the answer: the
results of another worker, or the permission to begin.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from treewright.kernel.procs.cancellation import Deadline
from treewright.tree.evaluating.known_results import KnownResults, SentResults

_WAIT = "1s"
_MOST_BYTES = 256 << 10


class Claim(msgspec.Struct, frozen=True):
    """The claim of an attempt, identified by its mark, to measure a git tree."""

    mark: str
    eval_id: str
    tree: str


def topic_of(cancel_event: str) -> str:
    return f"{cancel_event}-claims"


def _answer_variable(client: Any, mark: str) -> Any:
    """Return the cluster variable with the coordinator's answer to an attempt."""
    import distributed

    return distributed.Variable(f"{mark}-turn", client=client)


class AskedResults:
    """Results on the worker's side: those sent with the request, and the coordinator's answer."""

    def __init__(self, sent: SentResults, cancel_event: str, mark: str) -> None:
        self._sent = sent
        self._topic = topic_of(cancel_event)
        self._mark = mark
        self._told: tuple[str, bytes] | None = None

    def wait_for_turn(self, tree: str, eval_id: str, deadline: Deadline) -> None:
        import distributed

        if self._sent.find(tree) is not None:
            return
        claim = Claim(self._mark, eval_id, tree)
        distributed.get_worker().log_event(self._topic, msgspec.to_builtins(claim))
        answer = _answer_variable(distributed.get_client(), self._mark)
        with deadline.paused() as cancel:
            has_left = False
            while not cancel.is_set():
                with contextlib.suppress(TimeoutError):
                    source, data = answer.get(timeout=_WAIT)
                    self._told = (source, data) if source else None
                    if has_left:
                        distributed.rejoin()
                    return
                if not has_left:
                    # Free the slot: the awaited work may be requeued from a lost worker.
                    distributed.secede()
                    has_left = True

    def find(self, tree: str) -> tuple[str, bytes] | None:
        return self._sent.find(tree) or self._told


class ClaimServer:
    """Answers claims on the coordinator's side, for one executor.

    Claims arrive in the client's thread, which must not wait for the cluster. Another thread
    answers them.
    """

    def __init__(self, client: Any, cancel_event: str, known: KnownResults) -> None:
        self._client = client
        self._topic = topic_of(cancel_event)
        self._known = known
        self._over: set[str] = set()
        self._lock = threading.Lock()
        self._claims: queue.SimpleQueue[Claim | None] = queue.SimpleQueue()
        client.subscribe_topic(self._topic, self._heard)
        self._thread = threading.Thread(target=self._answer, name="claims", daemon=True)
        self._thread.start()

    def forget(self, mark: str) -> None:
        """Forget an attempt that is over; a late claim of it is ignored."""
        with self._lock:
            self._over.add(mark)
        with contextlib.suppress(Exception):  # the cluster itself may be lost
            _answer_variable(self._client, mark).delete()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.unsubscribe_topic(self._topic)
        self._claims.put(None)
        self._thread.join()

    def _heard(self, event: tuple[float, object]) -> None:
        with contextlib.suppress(msgspec.ValidationError):
            self._claims.put(msgspec.convert(event[1], type=Claim))

    def _answer(self) -> None:
        while (claim := self._claims.get()) is not None:
            with self._lock:
                if claim.mark not in self._over:
                    self._known.claim(claim.tree, claim.eval_id, self._ready(claim))

    def _ready(self, claim: Claim) -> Callable[[], None]:
        def say() -> None:
            found = self._known.find(claim.tree)
            fits = found is not None and len(found[1]) <= _MOST_BYTES
            with contextlib.suppress(Exception):  # the cluster itself may be lost
                _answer_variable(self._client, claim.mark).set(
                    list(found) if found and fits else ["", b""]
                )

        return say
