"""Lean in words, short, for a model that learnt from prose.

Symbols the model's vocabulary has not are put in words, names are taken apart, and binders are
left out: types of variables take most of the room and say least.
"""

from __future__ import annotations

import re

_WORDS = {
    "∀": " for all ",
    "∃": " exists ",
    "≠": " not equal ",
    "∣": " divides ",
    "∉": " not in ",
    "⊢": " shows ",
    "∑": " sum ",
    "∏": " product ",
    "++": " append ",
    "::": " cons ",
    "%": " mod ",
    "*": " times ",
    "≤": " at most ",
    "→": " implies ",
    "↔": " iff ",
    "∧": " and ",
    "∨": " or ",
    "¬": " not ",
    "∈": " in ",
}
_SYMBOL = re.compile("|".join(re.escape(s) for s in sorted(_WORDS, key=len, reverse=True)))
_BINDERS = re.compile(
    r"∀\s*(?:[({\[⦃][^(){}\[\]⦃⦄]*[)}\]⦄]\s*)+,|[{\[⦃][^{}\[\]⦃⦄]*:[^{}\[\]⦃⦄]*[}\]⦄]"
)
_BREAKS = re.compile(r"[._✝]+|(?<=[a-z])(?=[A-Z])")


def in_words(text: str) -> str:
    """`∀ {m n : Nat}, 0 < n → m ∣ n` becomes `0 < n implies m divides n`."""
    spoken = _SYMBOL.sub(lambda match: _WORDS[match[0]], _BINDERS.sub(" ", text))
    return " ".join(_BREAKS.sub(" ", spoken).split())


def of_declaration(name: str, type_text: str) -> str:
    return f"{in_words(name)}: {in_words(type_text)}"
