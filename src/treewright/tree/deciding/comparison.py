"""Scores of a results file: reads the CSV files that `scoring` compares.

A candidate that was swept several times has the sweeps of its parent in the same file, made
between its own. Its parent's older file is not used then.
"""

from __future__ import annotations

from treewright.tree.config import Config
from treewright.tree.deciding import objectives, scoring
from treewright.tree.deciding.results import Part, Results, Side
from treewright.tree.records.model import Comparison


def score_results(
    candidate: bytes | None,
    parent: bytes | None,
    root: bytes | None,
    expected_ids: list[int],
    config: Config,
    seed: int,
) -> tuple[Comparison, Comparison]:
    """Return the comparisons of a results CSV with its parent and with the root.

    The files are given as bytes, so that exactly the bytes with the recorded checksum are
    compared.
    """
    expected = set(expected_ids)
    repeats = config.repeats

    def read(data: bytes | None, side: Side = "candidate") -> list[Results]:
        return [
            objectives.read(data, config.metrics, expected.__contains__, Part(side, number))
            for number in range(1, repeats + 1)
        ]

    measured = read(candidate)
    above = read(parent) if repeats == 1 else read(candidate, "parent")
    baselines = (above, above if repeats == 1 and root == parent else read(root))
    compared = [
        scoring.compare(
            before[0],
            measured[0],
            expected_ids,
            config.metrics,
            seed,
            list(zip(before[1:], measured[1:], strict=True)),
        )
        for before in baselines
    ]
    return compared[0], compared[1]
