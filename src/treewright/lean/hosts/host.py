"""`Host`: how a Lean process is started, and which files a verdict of it depends on.

There are two hosts: the bundled Lean (`wasm/home.py`) and the toolchain of a project
(`native/host.py`). The protocol is the same for both: docs/lean-protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from treewright.lean.verify.verdict import ModuleDigest

# The stack limit has to be in force before the program is loaded, hence the shell.
STACK_KILOBYTES = 512 * 1024
WITH_STACK = (
    'ulimit -c 0; ulimit -s "$1" 2>/dev/null || ulimit -s "$(ulimit -H -s)"; shift; exec "$@"'
)


@dataclass(frozen=True, slots=True)
class Launch:
    """The command that starts a process, its directory and its whole environment."""

    command: Sequence[str]
    directory: str
    environment: Mapping[str, str]


@runtime_checkable
class Host(Protocol):
    """A Lean that can be started, any number of times."""

    @property
    def backend(self) -> str:
        """`wasm` or `native`, as `--lean` names it."""
        ...

    @property
    def detail(self) -> str:
        """The program that runs Lean, for people."""
        ...

    def launch(self) -> Launch:
        """Return how to start a process; raise an error if the installed files were changed."""
        ...

    def judging(self) -> Host:
        """Return the same Lean for a judge, which cannot import the modules of the project."""
        ...

    def is_library(self, module: str) -> bool:
        """Whether a judge may import a module of this name, as it is compiled."""
        ...

    def digest(self) -> str:
        """Return the digest of this Lean's files, for a certificate."""
        ...

    def changed(self, modules: Iterable[str]) -> str:
        """Return a file that verdicts depend on and that changed since this Lean was chosen, or ''.

        Args:
            modules: the modules of the project that the verdict depends on.
        """
        ...

    def digests(self, modules: Iterable[str]) -> tuple[ModuleDigest, ...]:
        """Return the digests of project modules that this Lean found by itself, for a
        certificate."""
        ...

    def lacking(self, problem: str) -> str:
        """Return the error message for a text that imports a module which this Lean lacks."""
        ...


def with_stack(command: Sequence[str]) -> list[str]:
    """The command with room for deep terms on its stack."""
    return ["/bin/sh", "-c", WITH_STACK, "sh", str(STACK_KILOBYTES), *command]
