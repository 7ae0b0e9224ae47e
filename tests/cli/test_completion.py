"""Shell completion, with a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from treewright.cli.main import COMMANDS

Program = Callable[..., subprocess.CompletedProcess[str]]


def _completed(line: str) -> list[str]:
    """Return the completions of the last word of a line."""
    words = line.split(" ")
    environment = {
        **os.environ,
        "_TREEWRIGHT_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "treewright"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "treewright.tree.run" not in done.stderr, "nothing is imported for names"
    return [entry.partition(",")[2] for entry in done.stdout.splitlines()]


def test_commands_and_options_are_completed() -> None:
    assert set(_completed("treewright ")) == set(COMMANDS)
    assert _completed("treewright comp") == ["compare", "completion"]
    assert "--allow-steering" in _completed("treewright mcp --a")
    assert _completed("treewright mcp --lean w") == ["wasm"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_valid_in_the_shell(treewright: Program, shell: str) -> None:
    done = treewright("completion", shell)
    assert done.returncode == 0
    assert "_TREEWRIGHT_COMPLETE" in done.stdout
    if (program := shutil.which(shell)) is not None:
        subprocess.run([program, "-n"], input=done.stdout, text=True, check=True)
