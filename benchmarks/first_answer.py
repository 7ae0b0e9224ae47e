"""How long a user waits for `treewright prove` of a trivial statement, Lean being installed.

    python -m benchmarks first-answer

The whole program, from its start to its exit. Wall time says something on an idle machine only;
processor time (Python and all its Lean processes) says how far cores can help.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.measure import Row, Table

STATEMENT = "∀ p q : Prop, p ∧ q → q ∧ p"


def first_answer(quick: bool) -> Table:
    script = str(Path(sys.executable).with_name("treewright"))
    command = [script, "prove", "--statement", STATEMENT]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    walls: list[float] = []
    costs: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        for _ in range(3 if quick else 9):
            before, begun = _children(), time.perf_counter()
            subprocess.run(command, cwd=place, env=environment, check=True, capture_output=True)
            walls.append(time.perf_counter() - begun)
            costs.append(_children() - before)
    rows = [
        Row("prove a trivial statement, wall", median(walls), "s", target=3.0),
        Row("the best of them", min(walls), "s"),
        Row("processor time, all processes", median(costs), "s"),
    ]
    load = f"Load average afterwards {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    return Table("first-answer", "First answer", rows, load)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
