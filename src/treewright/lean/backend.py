"""Which Lean to use, and why: the bundled one or the project's own toolchain."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from treewright.kernel.errors import MissingExtra, UsageError
from treewright.lean.session import LeanSession
from treewright.lean.wasm.install import Progress, ensure_installed, silent
from treewright.lean.wasm.session import WasmSession

Backend = Literal["wasm", "native"]
BACKENDS = ("auto", "wasm", "native")
_PROJECT_FILES = ("lakefile.toml", "lakefile.lean", "lean-toolchain")


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend, the reason in words, and the Lake project for `native`."""

    backend: Backend
    reason: str
    project: Path | None = None

    def __str__(self) -> str:
        return f"{self.backend} ({self.reason})"


def find_project(start: Path) -> Path | None:
    """The Lake project that `start` is in."""
    here = start.resolve()
    for directory in (here, *here.parents):
        if any((directory / name).is_file() for name in _PROJECT_FILES):
            return directory
    return None


def find_lake() -> str | None:
    return shutil.which("lake") or shutil.which("lake", path=str(Path.home() / ".elan" / "bin"))


def choose(requested: str = "auto", start: Path | None = None) -> Choice:
    """`auto`: native inside a Lake project whose toolchain is installed, else wasm."""
    if requested not in BACKENDS:
        raise UsageError(
            f"there is no Lean backend '{requested}'; choose from {', '.join(BACKENDS)}"
        )
    if requested == "wasm":
        return Choice("wasm", "asked for")
    project = find_project(start or Path.cwd())
    lake = find_lake()
    library = importlib.util.find_spec("lean_interact") is not None
    if requested == "native":
        if project is None:
            raise UsageError("--lean native works inside a Lake project; there is no lakefile here")
        if lake is None:
            raise UsageError(
                "--lean native needs a Lean toolchain: install elan, then run lake once"
            )
        if not library:
            raise MissingExtra("--lean native", "lean-native")
        return Choice("native", "asked for", project)
    if project is None:
        return Choice("wasm", "not inside a Lake project")
    if lake is None:
        return Choice("wasm", f"the Lake project {project.name} has no toolchain installed here")
    if not library:
        return Choice(
            "wasm", "a Lake project with a toolchain, but treewright[lean-native] is not installed"
        )
    return Choice("native", f"inside the Lake project {project.name}", project)


def open_session(
    choice: Choice,
    imports: Sequence[str] = ("Init",),
    preamble: str = "",
    progress: Progress = silent,
) -> LeanSession:
    """Opens a session; the bundled Lean is installed first if it is not there."""
    if choice.backend == "native":
        from treewright.lean.native.session import open_native

        assert choice.project is not None
        return open_native(choice.project, imports, preamble)
    return WasmSession(ensure_installed(progress), imports, preamble)
