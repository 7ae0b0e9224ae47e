"""Scoring results files: reading the CSVs that `scoring` compares."""

from __future__ import annotations

from treewright.tree.config import Config
from treewright.tree.deciding import scoring
from treewright.tree.deciding.results import Results, parse_results
from treewright.tree.records.model import Comparison


def score_results(
    candidate: bytes | None,
    parent: bytes | None,
    root: bytes | None,
    expected_ids: list[int],
    config: Config,
    seed: int,
    rule: int,
) -> tuple[Comparison, Comparison]:
    """Parent-relative and root-relative comparison of a results CSV, by a scoring rule.

    Takes bytes, not paths: what is compared is what was hashed.
    """
    expected = set(expected_ids)
    names = [metric.name for metric in config.metrics]

    def read(data: bytes | None) -> Results:
        return parse_results(data, names, expected.__contains__)

    measured, baseline = read(candidate), read(parent)
    baselines = (baseline, baseline if root == parent else read(root))
    compared = [
        scoring.compare(before, measured, expected_ids, config.metrics, seed, rule)
        for before in baselines
    ]
    return compared[0], compared[1]
