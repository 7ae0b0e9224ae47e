"""Whose turn it is to measure code that several workers of a cluster have at the same moment.

A worker tells the run's coordinator which code it is about to measure, and waits for its word: the
results that another one has left, or that it may begin.
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
    """An attempt, by its mark, is about to measure that code."""

    mark: str
    eval_id: str
    tree: str


def topic_of(cancel_event: str) -> str:
    return f"{cancel_event}-claims"


def _word(client: Any, mark: str) -> Any:
    """Where the cluster keeps what an attempt is told."""
    import distributed

    return distributed.Variable(f"{mark}-turn", client=client)


class AskedResults:
    """The worker's side: what was sent along, and what the coordinator answers."""

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
        word = _word(distributed.get_client(), self._mark)
        with deadline.paused() as cancel:
            has_left = False
            while not cancel.is_set():
                with contextlib.suppress(TimeoutError):
                    source, data = word.get(timeout=_WAIT)
                    self._told = (source, data) if source else None
                    if has_left:
                        distributed.rejoin()
                    return
                if not has_left:
                    # Its place is free for what a lost worker had: that may be what is waited for.
                    distributed.secede()
                    has_left = True

    def find(self, tree: str) -> tuple[str, bytes] | None:
        return self._sent.find(tree) or self._told


class Turns:
    """The coordinator's side, for one executor. Claims come in the client's own thread, in which
    nothing of the cluster can be waited for; so another one answers them."""

    def __init__(self, client: Any, cancel_event: str, known: KnownResults) -> None:
        self._client = client
        self._topic = topic_of(cancel_event)
        self._known = known
        self._over: set[str] = set()
        self._lock = threading.Lock()
        self._claims: queue.SimpleQueue[Claim | None] = queue.SimpleQueue()
        client.subscribe_topic(self._topic, self._heard)
        self._thread = threading.Thread(target=self._answer, name="turns", daemon=True)
        self._thread.start()

    def forget(self, mark: str) -> None:
        """That attempt is over: should its claim come late, nobody has to wait for it."""
        with self._lock:
            self._over.add(mark)
        with contextlib.suppress(Exception):  # the cluster may be what was lost
            _word(self._client, mark).delete()

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
            with contextlib.suppress(Exception):  # the cluster may be what was lost
                _word(self._client, claim.mark).set(list(found) if found and fits else ["", b""])

        return say
