"""What a replay check says: the words of a verdict, and what may be relied on without saying so.

Whoever only reads verdicts, or names axioms in settings, needs no process for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from treewright.lean.verify.certificate import Certificate

DEFAULT_AXIOMS = frozenset({"propext", "Classical.choice", "Quot.sound"})

Reason = Literal[
    "proved",
    "unchanged",
    "escape",
    "error",
    "sorry",
    "missing",
    "statement",
    "axiom",
    "unsafe",
    "kernel",
    "data",
    "timeout",
    "lost",
    "stale",
    "original",
]
FAULTS = frozenset({"timeout", "lost", "stale"})
"""Reasons that say nothing about the candidate: the same check may end otherwise."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether it is proved, and if not why, in one line. Only `Replayer` makes these."""

    reason: Reason
    detail: str = ""
    axioms: tuple[str, ...] = ()
    ms: float = 0.0
    certificate: Certificate | None = None

    @property
    def proved(self) -> bool:
        return self.reason == "proved"

    @property
    def is_fault(self) -> bool:
        """Whether the check could not be made, so that there is no verdict at all."""
        return self.reason in FAULTS

    def __bool__(self) -> bool:
        return self.proved
