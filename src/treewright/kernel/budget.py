"""The budget and the spending of a run: evaluations, seconds, cost."""

from __future__ import annotations

import msgspec


class Spending(msgspec.Struct):
    """The totals of a run. No field ever decreases."""

    evals: int = 0
    confirmations: int = 0
    seconds: float = 0.0
    cost_usd: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unpriced_tokens: int = 0
    """The tokens without a known price, which are not in `cost_usd`."""


class Budget(msgspec.Struct, frozen=True):
    """A hard cap on evaluations; None is no cap."""

    max_evals: int | None = None

    def evals_left(self, spent: Spending, queued: int = 0) -> int | None:
        """Return how many further evaluations may be queued; `queued` ones are not spent yet."""
        if self.max_evals is None:
            return None
        return max(0, self.max_evals - spent.evals - queued)

    def allow(self, wanted: int, spent: Spending, queued: int = 0) -> int:
        """Return how many of `wanted` further evaluations the budget allows."""
        left = self.evals_left(spent, queued)
        return wanted if left is None else min(wanted, left)
