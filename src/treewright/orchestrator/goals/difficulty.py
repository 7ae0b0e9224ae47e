"""A guess, from its looks alone, how hard a goal is: 0 is trivial, 1 hopeless.

It decides the lane only, so it may be wrong; it has to be cheap and always the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_SYMBOLS = re.compile(r"[\w.']+|[^\w\s]")
_HARD = {"∃": 0.15, "↔": 0.06, "∣": 0.08, "^": 0.05, "%": 0.05, "fun": 0.06, "Exists": 0.15}
_RECURSIVE = re.compile(
    r"\b(List|Array|Nat\.\w+|foldl|foldr|reverse|filter|length|append|\w*rec)\b"
)
_CLOSED_BY_ONE_TACTIC = 0.1
_SIZE_SCALE = 160.0


def estimate(text: str, context: Sequence[str] = ()) -> float:
    """Grows with the number of symbols, of alternating quantifiers and of recursive functions."""
    whole = " ".join([*context, text])
    symbols = _SYMBOLS.findall(whole)
    size = len(symbols) / (len(symbols) + _SIZE_SCALE)
    words = sum(_HARD.get(symbol, 0.0) for symbol in symbols)
    recursion = 0.07 * len(set(_RECURSIVE.findall(whole)))
    return round(min(1.0, _CLOSED_BY_ONE_TACTIC + size + min(0.45, words) + min(0.3, recursion)), 3)
