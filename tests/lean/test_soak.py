"""A short soak; `python -m benchmarks.lean_soak` is the long one."""

from __future__ import annotations

import pytest
from benchmarks.lean_soak import soak

from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.verify.replayer import Replayer

DRIFT_BYTES = 300_000_000


@pytest.mark.xdist_group("lean-replay")
def test_random_steps_mix_nothing_up(home: LeanHome, replayer: Replayer) -> None:
    report = soak(home, replayer, 120, seed=20)
    assert report.problems == []
    assert report.steps == 120
    assert report.lost == 0
    assert report.successes > 10
    assert report.proofs > 0
    assert report.retried > 0
    assert report.heap_late - report.heap_early < DRIFT_BYTES
