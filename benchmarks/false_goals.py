"""Goals that are false: none may be proved, and most should be refuted.

    python -m benchmarks.false_goals [--mode distributed] [--half tuned|held-out]

`bench/false.jsonl`, at defaults but for the search of the proof, which is given few simulations: a
false goal has none. The half whose names' sha256 is odd was put aside before anything was tuned.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.processes import LeanProcesses
from treewright.proving import run as runs
from treewright.proving.cell_settings import CellSettings
from treewright.proving.prover import Prover
from treewright.proving.settings import FileTarget, LeanRecord, Settings, StatementTarget, Target
from treewright.proving.tactics.basic_sources import defined_in
from treewright.proving.tactics.factory import build_source

CASES = Path(__file__).resolve().parent.parent / "bench" / "false.jsonl"
SIMULATIONS = 40


def cases(half: str) -> Iterator[tuple[str, Target]]:
    for line in CASES.read_text("utf-8").splitlines():
        case = json.loads(line)
        aside = int(hashlib.sha256(case["name"].encode()).hexdigest(), 16) % 2 == 1
        if half not in ("all", "held-out" if aside else "tuned"):
            continue
        if "statement" in case:
            yield case["name"], StatementTarget(case["statement"])
        else:
            yield case["name"], FileTarget(f"{case['name']}.lean", case["file"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=["centralized", "distributed"], default="centralized")
    parser.add_argument("--half", choices=["all", "tuned", "held-out"], default="all")
    options = parser.parse_args()
    cells = CellSettings(agents=4) if options.mode == "distributed" else None
    settings = Settings(mode=options.mode, simulations=SIMULATIONS, step_timeout=20.0, cells=cells)
    counts: dict[str, int] = {}
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as place, LeanProcesses(ensure_installed()) as lean:
        for name, target in cases(options.half):
            record = LeanRecord("wasm", "", "")
            directory = runs.new_directory(Path(place), None)
            runs.create(directory, target, settings, record, None)
            source = target.source if isinstance(target, FileTarget) else ""
            tactics = build_source(settings, definitions=defined_in(source))
            with runs.open_run(directory) as run:
                (goal,) = Prover(run, lean, tactics).prove().goals
            counts[goal.status] = counts.get(goal.status, 0) + 1
            shown = goal.proof.splitlines()[0] if goal.proof else goal.detail
            print(f"{goal.status:9} {name:22} {shown}", flush=True)
    print(counts, f"{time.process_time() - begun:.0f} s of Python's processor time")


if __name__ == "__main__":
    main()
