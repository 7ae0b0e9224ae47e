"""Scoring results files: reading the CSVs that `scoring` compares.

Where a candidate was swept several times its file has its parent's sweeps too, made between its
own: the parent's file of an earlier hour is not asked then.
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
    """Parent-relative and root-relative comparison of a results CSV.

    Takes bytes, not paths: what is compared is what was hashed.
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
