"""How long to wait at an endpoint, from what was asked of it lately. Pure.

A request counts for the minute that follows it, so that no window of a minute ever sees more
than is allowed; a request under way takes one of the places. Whoever came earlier and waits is
counted as if it had gone already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treewright.llm.endpoint import Endpoint

MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """None is no limit."""

    places: int | None = None
    requests: int | None = None
    tokens: int | None = None

    def stricter(self, other: Limits) -> Limits:
        """Of two users' limits the stricter holds for both."""
        return Limits(
            _smaller(self.places, other.places),
            _smaller(self.requests, other.requests),
            _smaller(self.tokens, other.tokens),
        )

    def __bool__(self) -> bool:
        return self != Limits()


def limits_of(endpoint: Endpoint) -> Limits:
    return Limits(endpoint.max_concurrent, endpoint.requests_per_minute, endpoint.tokens_per_minute)


@dataclass(frozen=True, slots=True)
class Lately:
    """What is known of an endpoint. `sent` are (time, tokens) of the last minute, in order."""

    under_way: int = 0
    sent: Sequence[tuple[float, int]] = ()
    held_until: float = float("-inf")
    waiting_earlier: int = 0
    tokens_wanted_earlier: int = 0


def wait(limits: Limits, lately: Lately, now: float, tokens: int = 0) -> float | None:
    """0 if a request of `tokens` may go ahead now, else after how many seconds to ask again;
    None if that depends on somebody else."""
    if lately.held_until > now:
        return lately.held_until - now
    ahead = lately.waiting_earlier
    if limits.places is not None and lately.under_way + ahead >= limits.places:
        return None
    waits = [0.0]
    if limits.requests is not None:
        free = limits.requests - ahead
        if free <= 0:
            return None
        if len(lately.sent) >= free:
            waits.append(lately.sent[len(lately.sent) - free][0] + MINUTE - now)
    if limits.tokens is not None:
        # A request above the limit would wait for ever; it goes when it has the minute for itself.
        room = max(0, limits.tokens - tokens)
        used = lately.tokens_wanted_earlier
        if used > room:
            return None
        for at, spent in reversed(lately.sent):
            used += spent
            if used > room:
                waits.append(at + MINUTE - now)
                break
    return max(0.0, *waits)


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
