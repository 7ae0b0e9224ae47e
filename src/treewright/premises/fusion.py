"""Reciprocal rank fusion: one ranking out of several whose scores do not compare."""

from __future__ import annotations

from collections.abc import Sequence

CONSTANT = 60


def fuse(rankings: Sequence[Sequence[int]], k: int) -> list[tuple[int, float]]:
    """The best k by the sum of 1 / (60 + rank), ranks from 1; equal sums in order of id."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, identifier in enumerate(ranking, start=1):
            scores[identifier] = scores.get(identifier, 0.0) + 1 / (CONSTANT + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
