"""How long a request has to wait under the limits of an endpoint. Pure.

A request counts for the minute after it was sent, so no window of one minute ever contains more
requests or tokens than allowed. Requests that wait are served in the order of their arrival: those
that arrived earlier count as if they had been sent already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treewright.llm.endpoint import Endpoint

MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an endpoint; None is no limit. Requests and tokens are per minute."""

    concurrent: int | None = None
    requests: int | None = None
    tokens: int | None = None

    @classmethod
    def of(cls, endpoint: Endpoint) -> Limits:
        """Return the limits that an endpoint's configuration sets."""
        return cls(
            endpoint.max_concurrent, endpoint.requests_per_minute, endpoint.tokens_per_minute
        )

    def stricter(self, other: Limits) -> Limits:
        """Return the smaller value of each limit."""
        return Limits(
            _smaller(self.concurrent, other.concurrent),
            _smaller(self.requests, other.requests),
            _smaller(self.tokens, other.tokens),
        )


@dataclass(frozen=True, slots=True)
class Load:
    """The requests that an endpoint has to count.

    Attributes:
        under_way: Requests without an answer yet.
        sent: The time and the tokens of each request of the last minute, in the order of sending.
        paused_until: No request may be sent before this time.
        waiting_earlier: Requests that wait and arrived before this one.
        tokens_earlier: The tokens that those requests need.
    """

    under_way: int = 0
    sent: Sequence[tuple[float, int]] = ()
    paused_until: float = float("-inf")
    waiting_earlier: int = 0
    tokens_earlier: int = 0


def wait_seconds(limits: Limits, load: Load, now: float, tokens: int = 0) -> float | None:
    """Return after how many seconds a request of `tokens` may be sent; 0 means now.

    None means that the time is unknown: the request has to wait until another one ends or is sent.
    """
    if load.paused_until > now:
        return load.paused_until - now
    earlier = load.waiting_earlier
    if limits.concurrent is not None and load.under_way + earlier >= limits.concurrent:
        return None
    waits = [0.0]
    if limits.requests is not None:
        free = limits.requests - earlier
        if free <= 0:
            return None
        if len(load.sent) >= free:
            waits.append(load.sent[len(load.sent) - free][0] + MINUTE - now)
    if limits.tokens is not None:
        # A request above the limit would wait for ever; it is sent when no other request counts.
        room = max(0, limits.tokens - tokens)
        used = load.tokens_earlier
        if used > room:
            return None
        for at, spent in reversed(load.sent):
            used += spent
            if used > room:
                waits.append(at + MINUTE - now)
                break
    return max(0.0, *waits)


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
