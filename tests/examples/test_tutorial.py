"""The shell blocks of docs/tutorial.md run in order, in one shell, with the shown output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from treewright.tree.ideas import idea_text

ROOT = Path(__file__).resolve().parents[2]
INSTALL = "make .venv/.run-installed\n. .venv/bin/activate\n"
PLACE = "/tmp/shops"


def script(shops: Path) -> str:
    """Return the commands as a user would paste them, for another directory and an installed
    treewright."""
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    commands = "".join(block.body for block in idea_text.blocks(tutorial) if block.info == "sh")
    assert INSTALL in commands
    assert PLACE in commands
    return "set -e\n" + commands.replace(INSTALL, "").replace(PLACE, f"'{shops}'")


def shown() -> list[str]:
    """Return the output lines that the tutorial shows, without those that it replaces by `...`."""
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = [block.body for block in idea_text.blocks(tutorial) if block.info == "text"]
    *outputs, own_repository = blocks
    assert own_repository.startswith("cd your-repository")
    lines = [line.removesuffix("...") for body in outputs for line in body.splitlines()]
    return [line for line in lines if line.strip()]


def test_every_command_of_the_tutorial(tmp_path: Path):
    shops = tmp_path / "shops"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", script(shops)],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

    def said(line: str) -> bool:
        return any(line in found for found in (done.stdout, done.stderr))

    for line in shown():
        assert said(line), f"the tutorial shows another output: {line}"
    assert said("IndexError: list index out of range")

    runs = shops / ".treewright" / "tree_runs"
    first = json.loads((runs / "first" / "manifest.json").read_text(encoding="utf-8"))
    assert first["stop_reason"] == "max_depth_reached"
    assert len(first["nodes"]["n0005"]["idea_chain"]) == 3
    second = json.loads((runs / "second" / "manifest.json").read_text(encoding="utf-8"))
    assert "mutate" in second["nodes"]["n0000"]["ideas"][18]["origin"]
    (promoted,) = second["depths"][0]["promoted"]
    last = second["nodes"][promoted]["idea_chain"][-1]
    title = idea_text.title((runs / "second" / last).read_text(encoding="utf-8"))
    assert title == "WINDOW in demand/trend.py: 14 -> 28"
