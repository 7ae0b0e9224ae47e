"""Upper bounds for the git processes that a run starts, counted by git's own trace."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.toy import ToyRepository

SMALL = ("--max-depth", "1", "--sweep-config-limit", "8", "--until-done")
PER_EVALUATION = 35
START_AND_END = 60
RESUME_OF_A_FINISHED_RUN = 5
VALIDATION = 15


@pytest.fixture
def count_processes(tmp_path: Path, treewright) -> Callable[..., int]:
    """Return a function that runs `treewright tree` and returns its number of git processes."""
    directories = iter(tmp_path / f"trace {number}" for number in range(100))

    def run(toy: ToyRepository, *flags: str) -> int:
        directory = next(directories)
        directory.mkdir()
        env = {**os.environ, "GIT_TRACE2_EVENT": str(directory)}
        arguments = ("tree", "--repo", str(toy.path), "--tree-run-id", "run", *flags)
        done = treewright(*arguments, env=env)
        assert done.returncode == 0, done.stderr
        return len(list(directory.iterdir()))

    return run


def test_an_evaluation_starts_few_git_processes(
    count_processes: Callable[..., int], tmp_path: Path
) -> None:
    few, more = (
        count_processes(ToyRepository.create(tmp_path / ideas), *SMALL, "--ideas-per-node", ideas)
        for ideas in ("2", "4")
    )
    assert 0 < more - few <= 2 * PER_EVALUATION


def test_starting_resuming_and_validating_start_few_git_processes(
    count_processes: Callable[..., int], tmp_path: Path
) -> None:
    toy = ToyRepository.create(tmp_path / "toy")
    whole = count_processes(toy, *SMALL, "--ideas-per-node", "1")
    assert whole <= START_AND_END + PER_EVALUATION
    assert count_processes(toy, *SMALL) <= RESUME_OF_A_FINISHED_RUN
    assert count_processes(toy, "--validate-only") <= VALIDATION
