"""The project around what a command is given, and what it says while it compiles."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from treewright.cli.output import echo

if TYPE_CHECKING:
    from treewright.lean.choice import Choice
    from treewright.lean.hosts.host import Host
    from treewright.lean.project.module_store import ModuleStore
    from treewright.lean.project.project import Project


def project_at(start: Path, store: ModuleStore | None = None) -> Project | None:
    """The Lake project that a path is in; None if it is in none."""
    from treewright.lean.choice import open_project

    return open_project(start, announce, store)


def announce(text: str) -> None:
    """What a project has to say, such as that it compiles."""
    echo(f"treewright: {text}", err=True)


@contextlib.contextmanager
def fresh_store(wanted: bool) -> Iterator[ModuleStore | None]:
    """A cache of compiled modules with nothing in it, if that is wanted; else the user's."""
    from treewright.lean.project.module_store import ModuleStore

    if not wanted:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="treewright-modules-") as directory:
        yield ModuleStore(Path(directory), secrets.token_bytes(32))


def project_of(
    host: Choice | Host, start: Path, store: ModuleStore | None = None
) -> Project | None:
    """The same for a session of the bundled Lean; a toolchain finds its project itself."""
    return project_at(start, store) if host.backend == "wasm" else None
