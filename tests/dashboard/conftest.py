"""A finished search and a server over it, once for the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard import proof_runs, samples
from tests.dashboard.serving import Server, served
from tests.toy import ToyRepository


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> ToyRepository:
    """A repository with a finished tree run and a finished proof run."""
    toy = samples.finished(tmp_path_factory.mktemp("searched"))
    proof_runs.solved(toy.path)
    return toy


@pytest.fixture(scope="session")
def server(searched: ToyRepository) -> Iterator[Server]:
    with served("--runs", searched.path) as running:
        yield running


@pytest.fixture
def run_dir(searched: ToyRepository) -> Path:
    return searched.run_dir(samples.RUN_ID)
