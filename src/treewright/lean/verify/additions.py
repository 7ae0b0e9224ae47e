"""The bytes and the errors that a candidate has and its original does not have."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Sequence

from treewright.lean.session.answers import Diagnostic

_ASSIGNED = re.compile(r"(\?[mu]|_uniq|_fvar|_mvar|_hyg)\.\d+")
_NUMBER = re.compile(r"[0-9]{1,18}")
_SPACE = re.compile(rb"\s")
_HOLE = re.compile(rb"\b(?:sorry|admit)\b")


def find_additions(original: bytes, candidate: bytes) -> tuple[tuple[int, int], ...]:
    """Return the ranges [start, end) of the candidate that the original does not have.

    The ranges consist of whole words. All text outside them is in the original too, in the same
    order.
    """
    filled = _filled(original, candidate)
    if filled is None:
        return _by_lines(original, candidate)
    if _has_hole(candidate, filled) and _holes(candidate) < _holes(original):
        # If there is little or no text between two sorries, the first place that fits may be the
        # wrong one, and a sorry that was not filled looks like a part of the added text.
        lines = _by_lines(original, candidate)
        return filled if _has_hole(candidate, lines) else lines
    return filled


def _holes(text: bytes) -> int:
    return sum(1 for _ in _HOLE.finditer(text))


def _has_hole(candidate: bytes, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(_HOLE.search(candidate, *stretch) for stretch in ranges)


def _by_lines(original: bytes, candidate: bytes) -> tuple[tuple[int, int], ...]:
    """Return the ranges of differing lines, for texts that differ not only in their sorries."""
    old = original.splitlines(keepends=True)
    new = candidate.splitlines(keepends=True)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    matcher = difflib.SequenceMatcher(
        a=old[head : len(old) - tail], b=new[head : len(new) - tail], autojunk=False
    )
    offsets = [0, *itertools.accumulate(len(line) for line in new)]
    ranges = []
    for tag, first, last, start, stop in matcher.get_opcodes():
        if tag != "equal":
            replaced = b"".join(old[head + first : head + last])
            begin, end = offsets[head + start], offsets[head + stop]
            ranges.append(_narrowed(replaced, candidate, begin, end))
    return tuple(ranges)


def _filled(original: bytes, candidate: bytes) -> tuple[tuple[int, int], ...] | None:
    """Return the places of the original's sorries, or None if the rest of the original differs."""
    first, *pieces = _HOLE.split(original)
    if not pieces or not candidate.startswith(first.rstrip()):
        return None
    at = len(first.rstrip())
    ranges = []
    for piece in (piece.strip() for piece in pieces[:-1]):
        found = candidate.find(piece, at)  # the first place that fits will do
        if found < 0:
            return None
        ranges.append((at, found))
        at = found + len(piece)
    end = len(candidate) - len(pieces[-1].lstrip())
    if end < at or candidate[end:] != pieces[-1].lstrip():
        return None
    ranges.append((at, end))
    return tuple(r for r in ranges if not _HOLE.fullmatch(candidate[slice(*r)].strip()))


def _narrowed(old: bytes, candidate: bytes, start: int, end: int) -> tuple[int, int]:
    """Return a range without the words at both ends that are also in `old`, the replaced lines."""
    new = candidate[start:end]
    ahead = min(_common(old, new), len(old), len(new))
    behind = min(_common(old[::-1], new[::-1]), len(old) - ahead, len(new) - ahead)
    while ahead and not _SPACE.match(new, ahead - 1):
        ahead -= 1
    while behind and not _SPACE.match(new, len(new) - behind):
        behind -= 1
    return start + ahead, end - behind


def _common(first: list[bytes] | bytes, second: list[bytes] | bytes) -> int:
    """Return the number of equal items at the beginning of two sequences."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def new_errors(
    candidate: Sequence[Diagnostic], original: Sequence[Diagnostic]
) -> tuple[Diagnostic, ...]:
    """Return the errors of a candidate that the original does not have, at any position.

    An error that moved down by some lines is the same, if the numbers in its text moved by as many
    lines or not at all: some messages of Lean name lines.
    """
    known: dict[str, list[tuple[int, list[int]]]] = {}
    for error in original:
        text, found = _without_numbers(error)
        known.setdefault(text, []).append((error.line, found))
    fresh = []
    for error in candidate:
        text, numbers = _without_numbers(error)
        same = known.get(text, [])
        for entry in same:
            line, before = entry
            if all(
                now - then in (0, error.line - line)
                for now, then in zip(numbers, before, strict=True)
            ):
                same.remove(entry)
                break
        else:
            fresh.append(error)
    return tuple(fresh)


def _without_numbers(error: Diagnostic) -> tuple[str, list[int]]:
    """Return the text of an error without numbers, and the numbers.

    Those that Lean assigns as it goes along are left out.
    """
    text = _ASSIGNED.sub(r"\1", error.text)
    return _NUMBER.sub("0", text), [int(found) for found in _NUMBER.findall(text)]
