"""What a host of the Lean protocol is to the rest: how its process is started, and its name.

There are two: the bundled Lean (`wasm/home.py`) and the toolchain of a project
(`native/host.py`). Everything else about a session is the protocol: docs/lean-protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from treewright.lean.verify.certificate import ModuleDigest

# The stack limit has to be in force before the program is loaded, hence the shell.
STACK_KILOBYTES = 512 * 1024
WITH_STACK = (
    'ulimit -c 0; ulimit -s "$1" 2>/dev/null || ulimit -s "$(ulimit -H -s)"; shift; exec "$@"'
)


@dataclass(frozen=True, slots=True)
class Launch:
    """A command, and all that its process knows of its surroundings."""

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
        """What runs it, for people."""
        ...

    def launch(self) -> Launch:
        """How to start it now; raises if it is not what was installed."""
        ...

    def judging(self) -> Host:
        """The same Lean for a judge, which cannot import what is to be judged."""
        ...

    def is_library(self, module: str) -> bool:
        """Whether a judge may import a module of this name, as it is compiled."""
        ...

    def digest(self) -> str:
        """What a certificate says of the files that this Lean consists of."""
        ...

    def changed(self, modules: Iterable[str]) -> str:
        """A file that verdicts rest on, of these modules of the project or not, which is not what
        it was when this Lean was chosen; '' if there is none."""
        ...

    def digests(self, modules: Iterable[str]) -> tuple[ModuleDigest, ...]:
        """What a certificate says of modules of the project that this Lean found by itself."""
        ...

    def lacking(self, problem: str) -> str:
        """What to tell somebody whose text imports what this Lean has not got."""
        ...


def with_stack(command: Sequence[str]) -> list[str]:
    """The command with room for deep terms on its stack."""
    return ["/bin/sh", "-c", WITH_STACK, "sh", str(STACK_KILOBYTES), *command]
