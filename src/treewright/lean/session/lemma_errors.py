"""The error of a file that uses `lemma` without importing it, in words that name the cause.

`lemma` is Mathlib's synonym of `theorem`. Without Mathlib, Lean reports an unexpected identifier
there and skips the declaration, together with every `sorry` in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from treewright.lean.session.answers import Diagnostic

_UNEXPECTED = "unexpected identifier; expected "
_LEMMA = re.compile(r"(?P<space>\s*)lemma\b")
_OPEN = re.compile(r"\b(sorry|admit)\b")
_CAUSE = (
    "`lemma` is a command of Mathlib, and this file does not import it: write `theorem` instead, "
    "or import Mathlib.Tactic.Lemma in a project that has Mathlib"
)


@dataclass(frozen=True, slots=True)
class UnreadLemma:
    """A `lemma` that Lean skipped.

    `has_sorry`: whether its text, up to the next line that begins in column 0, has a `sorry`.
    """

    error: Diagnostic
    has_sorry: bool


def explained(source: str, diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic; if it is about the word `lemma`, with the cause as its text.

    After an attribute or a modifier, Lean's position is before the space. The returned diagnostic
    has the position of the word.
    """
    if diagnostic.severity != "error" or not diagnostic.text.startswith(_UNEXPECTED):
        return diagnostic
    ahead = source.split("\n")[diagnostic.line - 1 :]
    found = _LEMMA.match("\n".join(ahead), diagnostic.column) if ahead else None
    if found is None:
        return diagnostic
    skipped = found["space"].split("\n")
    begin = diagnostic.column if len(skipped) == 1 else 0
    return msgspec.structs.replace(
        diagnostic,
        text=_CAUSE,
        line=diagnostic.line + len(skipped) - 1,
        column=begin + len(skipped[-1]),
    )


def unread_lemmas(source: str, diagnostics: Iterable[Diagnostic]) -> list[UnreadLemma]:
    """Return every `lemma` that Lean skipped, given diagnostics from `explained`."""
    found = []
    lines = source.split("\n")
    for error in diagnostics:
        if error.text == _CAUSE:
            first, *rest = lines[error.line - 1 :]
            text = [first[error.column :]]
            for line in rest:
                if line[:1].strip():
                    break
                text.append(line)
            found.append(UnreadLemma(error, _OPEN.search("\n".join(text)) is not None))
    return found
