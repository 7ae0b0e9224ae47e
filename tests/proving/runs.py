"""Proof runs on one real Lean session that all tests of a worker share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from tests.here import Lent, LentLean
from treewright.lean.processes import LeanProcesses
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.proving import run as runs
from treewright.proving.prover import Prover
from treewright.proving.run import RunResult
from treewright.proving.settings import LeanRecord, Settings, StatementTarget, Target
from treewright.proving.tactics.factory import build_source

LEAN = LeanRecord("wasm", "test", "")

Prove = Callable[..., tuple[RunResult, Path]]
SessionFactory = Callable[[], HostSession]


@pytest.fixture(scope="session")
def sessions(lean_session: Callable[[], HostSession]) -> SessionFactory:
    """Lend the worker's session to all runs, one after the other."""
    return lambda: Lent(lean_session())  # pyright: ignore[reportReturnType]


def resume(directory: Path, sessions: SessionFactory, replayer: Replayer) -> RunResult:
    """Begin or continue a run."""
    with runs.open_run(directory) as run:
        lean = cast("LeanProcesses", LentLean(sessions, replayer))
        return Prover(run, lean, build_source(run.record.settings)).prove()


@pytest.fixture
def prove(tmp_path: Path, sessions: SessionFactory, replayer: Replayer) -> Prove:
    def go(
        target: Target | str, settings: Settings | None = None, checker: Replayer | None = None
    ) -> tuple[RunResult, Path]:
        target = StatementTarget(target) if isinstance(target, str) else target
        settings = settings or Settings(simulations=40, step_timeout=20.0)
        directory = runs.new_directory(tmp_path, None)
        runs.create(directory, target, settings, LEAN, None)
        return resume(directory, sessions, checker or replayer), directory

    return go
