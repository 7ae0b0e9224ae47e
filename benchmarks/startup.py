"""How long a user waits for the first byte of help."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import Row, Table, medians, seconds, take_turns


def startup(quick: bool) -> Table:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    script = Path(sys.executable).with_name("treewright")
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -c 'import click'": [sys.executable, "-c", "import click"],
        "treewright --help": [str(script), "--help"],
        "treewright tree --help": [str(script), "tree", "--help"],
    }

    def call(command: list[str]) -> float:
        return seconds(
            lambda: subprocess.run(command, env=environment, check=True, capture_output=True)
        )

    for command in commands.values():
        call(command)  # writes the bytecode
    taken = medians(
        take_turns(
            {name: lambda command=command: call(command) for name, command in commands.items()},
            turns=5 if quick else 21,
        )
    )
    base = taken["python -c pass"]
    rows = [
        Row(
            name,
            value,
            "s",
            target=0.3 if name.startswith("treewright") else None,
        )
        for name, value in taken.items()
    ]
    beyond = 1000 * (taken["treewright --help"] - base)
    return Table("startup", "Start-up", rows, f"treewright --help adds {beyond:.0f} ms to Python.")
