"""Scoring results files: reading the CSVs that `scoring` compares."""

from __future__ import annotations

from pathlib import Path

from treewright.tree import scoring
from treewright.tree.config import Config
from treewright.tree.model import Comparison
from treewright.tree.results import Results, read_results


def score_files(
    results: Path,
    parent_baseline: Path,
    root_baseline: Path,
    expected_ids: list[int],
    config: Config,
    seed: int,
) -> tuple[Comparison, Comparison]:
    """Parent-relative and root-relative comparison of a results CSV."""
    expected = set(expected_ids)
    names = [metric.name for metric in config.metrics]

    def read(path: Path) -> Results:
        return read_results(path, names, expected.__contains__)

    candidate, parent = read(results), read(parent_baseline)
    root = parent if root_baseline == parent_baseline else read(root_baseline)
    compare = [
        scoring.compare(baseline, candidate, expected_ids, config.metrics, seed)
        for baseline in (parent, root)
    ]
    return compare[0], compare[1]
