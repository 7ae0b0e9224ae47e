"""The lines of `treewright doctor` about the strategies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.kernel.health_checks import Check
from treewright.lean.checkup import bundled_lean
from treewright.lean.choice import choose
from treewright.orchestrator.workers.factory import all_workers
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.worker import LeanWorker


def checks(repo: Path | None) -> Iterator[Check]:
    """Yield a line for each strategy. No process, download or request is started."""
    try:
        choice = choose("auto", repo)
    except TreewrightError:  # the lines about Lean report the problem with the toolchain
        choice = choose("wasm")
    for worker in all_workers(LeanAccess(start=repo, choice=choice)):
        probe = worker.probe()
        name = str(worker.strategy)
        if not probe.available:
            yield Check("strategies", name, "absent", probe.detail, probe.hint)
        elif isinstance(worker, LeanWorker) and choice.backend == "wasm":
            yield bundled_lean("strategies", name, probe.detail)
        else:
            yield Check("strategies", name, "ok", probe.detail)
