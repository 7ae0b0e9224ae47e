"""The ledger's tactic cache as a tactic source of proof search sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treewright.orchestrator.ledger.store import Ledger

_TURNSTILE = "⊢ "


@dataclass(frozen=True, slots=True)
class Remembered:
    """A script that closed an equal goal, and how often it does."""

    tactic: str
    success_rate: float


class LedgerTactics:
    """Looks goals up by their normal form. A goal without hypotheses is its target."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def tactics_for(self, goal: str) -> Sequence[Remembered]:
        cached = self._ledger.get_cached_tactics(goal.removeprefix(_TURNSTILE))
        if cached is None or not cached["tactics"]:
            return ()
        return (Remembered("\n".join(cached["tactics"]), cached["success_rate"]),)
