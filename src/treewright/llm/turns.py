"""Waiting for one's turn at an endpoint; how the turns are shared is `shared_turns`.

Waiting is asyncio's, and ends when nobody wants the answer any more. Without limits a shared file
that cannot be used is no reason not to ask: then a `Retry-After` is known only to whoever got it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel import http_client
from treewright.kernel.storage.user_directories import cache_directory
from treewright.llm import keys
from treewright.llm.endpoint import Endpoint
from treewright.llm.limits import Limits, limits_of
from treewright.llm.shared_turns import Busy, SharedTurns, Unusable

_TICK_SECONDS = 0.05
_LONGEST_NAP_SECONDS = 1.0

_declared: dict[str, Limits] = {}
_declaring = threading.Lock()


class HoldTooLong(Exception):
    """The endpoint asked for more patience than the caller has."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"asked to be left alone for another {seconds:.0f} s")


@dataclass(frozen=True, slots=True)
class Turn:
    ticket: int | None
    waited_seconds: float


class Queue:
    """The turns of whoever shares the endpoint's address and key variable, whatever the model."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._identity = _identity(endpoint)
        self._shared = SharedTurns(shared_file(), self._identity)
        with _declaring:
            known = _declared.get(self._identity, Limits())
            _declared[self._identity] = known.stricter(limits_of(endpoint))

    async def begin(
        self, tokens: int, seconds: float, patience: float, unwanted: http_client.Unwanted
    ) -> Turn:
        """Waits for a turn of at most `seconds`.

        `patience` bounds only how long the endpoint may ask to be left alone: a queue of
        our own making is waited for, however long it is.
        """
        began = time.monotonic()
        ticket: int | None = None
        try:
            while True:
                try:
                    if ticket is None:
                        ticket = self._shared.enter(self._limits, tokens)
                    answer, held = self._shared.take(ticket, tokens, seconds)
                except Busy:
                    answer, held = None, 0.0
                if answer == 0:
                    return Turn(ticket, time.monotonic() - began)
                if held > patience:
                    raise HoldTooLong(held)
                nap = min(_TICK_SECONDS if answer is None else answer, _LONGEST_NAP_SECONDS)
                await http_client.within(asyncio.sleep(nap), math.inf, unwanted)
        except Unusable:
            if self._limits:
                raise
            return Turn(None, time.monotonic() - began)
        except BaseException:
            self._leave(ticket, None)
            raise

    def end(self, turn: Turn, tokens: int | None) -> None:
        """`tokens` is what the turn really cost, if that is known."""
        self._leave(turn.ticket, tokens)

    def hold(self, seconds: float) -> None:
        """What an endpoint that answered `Retry-After` asks of everybody."""
        with contextlib.suppress(Busy, Unusable):
            self._shared.hold(seconds)

    @property
    def _limits(self) -> Limits:
        with _declaring:
            return _declared[self._identity]

    def _leave(self, ticket: int | None, tokens: int | None) -> None:
        if ticket is not None:
            with contextlib.suppress(Busy, Unusable):  # the others will see that we are gone
                self._shared.leave(ticket, tokens)


def shared_file() -> Path:
    return cache_directory() / "llm" / "turns.sqlite"


def _identity(endpoint: Endpoint) -> str:
    """Not the address itself, which may have a password in it."""
    text = f"{endpoint.base_url.rstrip('/')}\0{keys.name_for(endpoint) or ''}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
