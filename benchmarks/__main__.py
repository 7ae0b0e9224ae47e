"""`python -m benchmarks [NAME...]`: prints tables of ratios; see docs/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.asktell import asktell
from benchmarks.coordinator import growth, overhead
from benchmarks.feedback import feedback
from benchmarks.first_answer import first_answer
from benchmarks.mcp_calls import mcp_calls
from benchmarks.measure import Table, render
from benchmarks.native import native
from benchmarks.parallel import coordinator_cpu, memory, speedup
from benchmarks.premises import premises
from benchmarks.projects import projects
from benchmarks.startup import startup
from benchmarks.worktrees import worktrees

BENCHMARKS: dict[str, Callable[[bool], Table]] = {
    "asktell": asktell,
    "overhead": overhead,
    "growth": growth,
    "feedback": feedback,
    "worktrees": worktrees,
    "startup": startup,
    "parallel": speedup,
    "coordinator-cpu": coordinator_cpu,
    "memory": memory,
    "premises": premises,
    "projects": projects,
    "native": native,
    "first-answer": first_answer,
    "mcp": mcp_calls,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="fewer turns and smaller runs")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers here")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    tables = []
    for name in options.names or BENCHMARKS:
        tables.append(BENCHMARKS[name](options.quick))
        print(render(tables[-1]), end="\n\n", flush=True)
    if options.json:
        document = {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "tables": {table.name: [row.as_json() for row in table.rows] for table in tables},
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    missed = any(row.met is False for table in tables for row in table.rows)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
