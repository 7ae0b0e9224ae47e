"""`--lean` and `--sandbox`: choose a Lean, say which on stderr, and open it with its project."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.options import combined, option
from treewright.cli.output import DownloadBar, announce, echo

if TYPE_CHECKING:
    from treewright.lean.choice import Choice
    from treewright.lean.hosts.host import Host
    from treewright.lean.hosts.wasm.install import Progress
    from treewright.lean.project.module_store import ModuleStore
    from treewright.lean.project.project import Project
    from treewright.proving.settings import RunRecord, Target

BACKENDS = ("auto", "wasm", "native")
_HEADING = "Lean"

sandbox_option = option(
    "--sandbox",
    is_flag=True,
    default=None,
    heading=_HEADING,
    help="Run native Lean inside bubblewrap. The bundled Lean (wasm) is always in a sandbox.",
)
_lean_option = option(
    "--lean",
    "requested",
    type=click.Choice(BACKENDS),
    heading=_HEADING,
    default_text="auto",
    help="Lean to use: bundled (wasm) or a toolchain (native). auto takes native inside a Lake "
    "project whose toolchain is installed.",
)


def lean_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--lean` and `--sandbox` to a command, as the parameters `requested` and `sandbox`."""
    return combined(_lean_option, sandbox_option)(command)


def choose_lean(requested: str | None, sandbox: bool | None, start: Path | None = None) -> Choice:
    """Choose a Lean for a directory, and print the choice and its reason on stderr."""
    from treewright.lean.choice import choose, other_version

    choice = choose(requested or "auto", start, sandbox=bool(sandbox))
    echo(f"Lean backend: {choice}", err=True)
    if note := other_version(choice, start):
        echo(f"warning: {note}", err=True)
    if choice.backend == "native" and not sandbox:
        echo(
            "native Lean runs code of the files it reads with your rights; see --sandbox", err=True
        )
    return choice


def open_choice(choice: Choice) -> Host:
    """Open the chosen Lean; the bundled one is installed on first use."""
    from treewright.lean.choice import open_host

    return open_host(choice, _installation_progress(choice))


def open_lean(requested: str | None, sandbox: bool | None, start: Path | None = None) -> Host:
    """Choose and open a Lean for a directory."""
    return open_choice(choose_lean(requested, sandbox, start))


def open_lean_for_target(
    target: Target, requested: str | None, sandbox: bool | None
) -> tuple[Host, Project | None]:
    """Open the Lean for a target, and the Lake project of its file for the bundled Lean."""
    from treewright.lean import choice as lean_choice
    from treewright.proving.settings import FileTarget

    if not isinstance(target, FileTarget):
        return open_lean(requested, sandbox), None
    start = Path(target.path).resolve()
    choice = choose_lean(requested, sandbox, start if start.is_dir() else start.parent)
    return lean_choice.open_lean(choice, start, announce, _installation_progress(choice))


def open_lean_of_run(record: RunRecord, sandbox: bool | None = None) -> tuple[Host, Project | None]:
    """Open the kind of Lean that a proof run was made with."""
    return open_lean_for_target(record.target, record.lean.backend, sandbox)


def _installation_progress(choice: Choice) -> Progress:
    from treewright.lean.hosts.wasm.install import is_installed, silent

    if choice.backend == "native":
        return silent
    if not is_installed():
        announce("installing the bundled Lean (once, about 120 MB)")
    return DownloadBar()


def project_for(
    host: Choice | Host, start: Path, store: ModuleStore | None = None
) -> Project | None:
    """Return the Lake project around a path for the bundled Lean, or None.

    A toolchain finds its project itself.

    Args:
        store: The cache of compiled modules (default: the user's).
    """
    from treewright.lean.choice import open_project

    return open_project(start, announce, store) if host.backend == "wasm" else None


@contextlib.contextmanager
def empty_store() -> Iterator[ModuleStore]:
    """Yield an empty cache of compiled modules, which is deleted at the end."""
    from treewright.lean.project.module_store import ModuleStore

    with tempfile.TemporaryDirectory(prefix="treewright-modules-") as directory:
        yield ModuleStore(Path(directory), secrets.token_bytes(32))
