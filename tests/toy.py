"""A small real target repository: parameters in a file, a sweep in shell and awk.

`loss` falls when A, B or C rises; D only adds noise that differs by config. Values are read from
`params.txt`, so an idea is a one-line patch. The sweep takes milliseconds."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

PARAMS = "".join(f"{name} 1.0\n# keep\n# keep\n# keep\n# keep\n" for name in "ABCD")

SWEEP = """\
#!/bin/sh
start=${TREEWRIGHT_SWEEP_CONFIG_START:-0}
stop=${TREEWRIGHT_SWEEP_CONFIG_LIMIT:-10}
awk -v start="$start" -v stop="$stop" '
/^[A-Z]/ { value[$1] = $2 }
END {
  print "config_id,status,loss,cost"
  for (i = start; i < stop; i++) {
    wave = ((i * 7919) % 13) / 13 - 0.5
    loss = 20 - value["A"] - value["B"] - value["C"] + wave * value["D"]
    printf "%d,ok,%.6f,%.6f\\n", i, loss, 5 + wave
  }
}' params.txt > "$TREEWRIGHT_RESULTS_CSV"
"""

CONFIG = """\
baseline_csv = "baseline.csv"
protected_paths = ["sweep.sh", "tests.sh"]

[sweep]
command = "sh sweep.sh"
timeout_seconds = 60

[tests]
command = "sh tests.sh"

[[metrics]]
name = "loss"
direction = "minimize"
primary = true

[[metrics]]
name = "cost"
direction = "minimize"
weight = 0.1

[[ideas]]
source = "directory"
path = "ideas"
"""

BASELINE_ROWS = 16


def diff_of_line(path: str, before: str, after: str, line: int, context: str = "# keep") -> str:
    """Return a unified diff of one line, with the next line as context."""
    return (
        f"--- a/{path}\n+++ b/{path}\n@@ -{line},2 +{line},2 @@\n-{before}\n+{after}\n {context}\n"
    )


def idea(title: str, patch: str) -> str:
    return f"# {title}\n\nA reason.\n\n```diff\n{patch}```\n"


def set_parameter(name: str, value: float) -> str:
    """Return the text of an idea that sets one parameter."""
    line = 1 + 5 * "ABCD".index(name)
    return idea(
        f"Set {name} to {value}",
        diff_of_line("params.txt", f"{name} 1.0", f"{name} {value}", line),
    )


@dataclass(frozen=True)
class ToyRepository:
    path: Path

    @classmethod
    def create(cls, path: Path) -> ToyRepository:
        """Copy a repository that is created once per process: all copies have the same first
        commit."""
        shutil.copytree(_template(), path, symlinks=True)
        return cls(path)

    @classmethod
    def make(cls, path: Path) -> ToyRepository:
        path.mkdir(parents=True)
        toy = cls(path)
        toy.git("init", "-q", "-b", "main")
        toy.write("params.txt", PARAMS)
        toy.write("sweep.sh", SWEEP)
        toy.write("tests.sh", "test -s params.txt\n")
        toy.write("treewright.toml", CONFIG)
        results = path / "baseline.csv"
        subprocess.run(
            ["sh", "sweep.sh"],
            cwd=path,
            env={
                "PATH": "/usr/bin:/bin:/usr/local/bin",
                "TREEWRIGHT_RESULTS_CSV": str(results),
                "TREEWRIGHT_SWEEP_CONFIG_LIMIT": str(BASELINE_ROWS),
            },
            check=True,
        )
        toy.write("ideas/00_help.md", set_parameter("A", 2.0))
        toy.write("ideas/01_hurt.md", set_parameter("B", 0.5))
        toy.write("ideas/02_help.md", set_parameter("C", 1.5))
        toy.write("ideas/03_noise.md", set_parameter("D", 1.2))
        toy.write("ideas/04_help.md", set_parameter("B", 3.0))
        toy.commit("A repository to improve")
        return toy

    def git(self, *args: str) -> str:
        identity = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
        return subprocess.run(
            ["git", *identity, *args], cwd=self.path, check=True, capture_output=True, text=True
        ).stdout

    def write(self, name: str, text: str) -> Path:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def commit(self, message: str = "change") -> str:
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def run_dir(self, run_id: str) -> Path:
        return self.path / ".treewright" / "tree_runs" / run_id


@functools.cache
def _template() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="treewright-toy-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return ToyRepository.make(directory / "toy").path
