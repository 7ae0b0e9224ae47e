"""What a run may spend and what it has spent: evaluations, seconds, cost."""

from __future__ import annotations

import msgspec


class Spending(msgspec.Struct):
    """Totals over a run. Every field only grows."""

    evals: int = 0
    confirmations: int = 0
    seconds: float = 0.0
    cost_usd: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unpriced_tokens: int = 0
    """Of the tokens, those without a known price: they are not in `cost_usd`."""


class Budget(msgspec.Struct, frozen=True):
    """A hard cap on evaluations; None is no cap."""

    max_evals: int | None = None

    def evals_left(self, spent: Spending, queued: int = 0) -> int | None:
        """How many more evaluations may be queued, given those queued and not yet counted."""
        if self.max_evals is None:
            return None
        return max(0, self.max_evals - spent.evals - queued)

    def allow(self, wanted: int, spent: Spending, queued: int = 0) -> int:
        """How many of `wanted` further evaluations the budget admits."""
        left = self.evals_left(spent, queued)
        return wanted if left is None else min(wanted, left)
