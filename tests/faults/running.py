"""A search in a child process, and the properties that every run must have after any fault."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests import program
from tests.signals import as_from_a_terminal
from tests.toy import ToyRepository
from tests.waiting import until
from treewright.kernel.procs import proctree
from treewright.tree.run import cleanup

RUN = "run"
SHAPE = (
    "--ideas-per-node", "2", "--beam-width", "1", "--max-depth", "2", "--sweep-config-limit", "6"
)  # fmt: skip


class Search:
    """`treewright tree` on a toy repository, started and watched."""

    def __init__(
        self, toy: ToyRepository, *flags: str, script: str | None = None, **options: Any
    ) -> None:
        """Start the program; `script` replaces the start by its module."""
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        if script is None:
            self.child = program.start(arguments(toy, *flags), **options)
        else:
            started = [sys.executable, "-c", script, *arguments(toy, *flags)]
            self.child = subprocess.Popen(started, preexec_fn=as_from_a_terminal, **options)
        self.out = self.err = ""

    def signal(self, number: signal.Signals) -> None:
        self.child.send_signal(number)
        if number == signal.SIGSTOP:
            stat = Path(f"/proc/{self.child.pid}/stat")
            until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def end(self, seconds: float = 200) -> int:
        """Wait for the end and return the exit code."""
        self.out, self.err = self.child.communicate(timeout=seconds)
        assert "Traceback" not in self.err, self.err
        return self.child.returncode


def arguments(toy: ToyRepository, *flags: str) -> list[str]:
    return ["tree", "--repo", str(toy.path), "--tree-run-id", RUN, *flags]


def search(toy: ToyRepository, *flags: str, code: int = 0, **options: Any) -> Search:
    """Run a search to its end and check its exit code."""
    done = Search(toy, *flags, **options)
    assert done.end() == code, done.err
    return done


def finish(toy: ToyRepository, *flags: str) -> dict[str, Any]:
    """Continue the run until it stops and return its JSON."""
    return json.loads(search(toy, "--until-done", *flags).out)


def one_line(stderr: str) -> str:
    """Return the error line of a failed command."""
    lines = [line for line in stderr.splitlines() if line.startswith("treewright: ")]
    assert len(lines) == 1, stderr
    assert stderr.splitlines()[-1] == lines[0]
    return lines[0]


def nothing_runs(toy: ToyRepository) -> bool:
    """Return whether every process that the run started has ended."""
    owner = cleanup.process_owner(toy.run_dir(RUN), 0).removesuffix("0")
    return proctree.marked(owner, prefix=True) == []


def fingerprint(toy: ToyRepository) -> dict[str, str]:
    """Return a hash of every file of the run (but heartbeats) and of every ref of the
    repository."""
    run_dir = toy.run_dir(RUN)
    found = {
        str(path.relative_to(run_dir)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in run_dir.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }
    found["refs"] = toy.git("for-each-ref")
    found["head"] = toy.git("symbolic-ref", "HEAD") + toy.git("status", "--porcelain")
    found["worktrees"] = toy.git("worktree", "list", "--porcelain")
    return found


def copy_of(toy: ToyRepository, path: Path) -> ToyRepository:
    subprocess.run(["cp", "-a", str(toy.path), str(path)], check=True)
    return ToyRepository(path)


def evaluations(toy: ToyRepository) -> dict[str, Any]:
    return json.loads((toy.run_dir(RUN) / "manifest.json").read_text())["evaluations"]


GATE = """\
case "$TREEWRIGHT_RESULTS_CSV" in */preflight/*) TOY_GATE= ;; esac
if [ -n "$TOY_GATE" ]; then
  : > "$TOY_GATE/swept"
  until test -e "$TOY_GATE/open"; do sleep 0.05; done
fi
"""


class Gate:
    """Holds a gated sweep until the test opens it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "TOY_GATE": str(self.path)}

    def wait(self) -> None:
        """Return once a sweep waits at the gate."""
        until(lambda: (self.path / "swept").exists(), what="a sweep at the gate")

    def open(self) -> None:
        (self.path / "open").touch()


def add_gate(toy: ToyRepository) -> None:
    """Make the sweep wait where its environment sets a gate."""
    toy.write("sweep.sh", GATE + (toy.path / "sweep.sh").read_text())
    toy.commit("a gate")
