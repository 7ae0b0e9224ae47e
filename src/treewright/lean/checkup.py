"""What `treewright doctor` says about both Leans: the bundled one, and the project's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.kernel.health_checks import Check
from treewright.lean.native.toolchain import find_project, find_toolchain, too_old
from treewright.lean.projects import kept_modules
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.install import find_installed, installed_path, is_installed
from treewright.lean.wasm.manifest import verify_home

_GROUP = "lean"
_NAME = "bundled Lean"
_NATIVE = "native Lean"
_PROJECT = "Lake project"
_COMPILED = "its modules"
_MOST_SHOWN = 3
_PROJECT_HINT = "--repo DIR looks elsewhere"
_HINT = "treewright lean install (or the first run) fetches it"


def checks(repo: Path | None) -> Iterator[Check]:
    """Reads every file of the home; starts and fetches nothing."""
    yield _bundled()
    yield from _native(repo or Path.cwd())


def _bundled() -> Check:
    if not is_installed():
        return Check(_GROUP, _NAME, "absent", "not installed yet", _HINT)
    path = installed_path()
    try:
        count = verify_home(LeanHome(path, path), full=True)
    except TreewrightError as error:
        return Check(_GROUP, _NAME, "failed", str(error))
    return bundled_lean(_GROUP, _NAME, f"{count} files verified in {path}")


def _native(start: Path) -> Iterator[Check]:
    """The Lake project around `start`, its toolchain, and what keeps native Lean in bounds."""
    project = find_project(start)
    if project is None:
        yield Check(_GROUP, _PROJECT, "absent", "not inside one", _PROJECT_HINT)
    else:
        built = sum(1 for _ in (project / ".lake" / "build").rglob("*.olean"))
        yield Check(_GROUP, _PROJECT, "ok", f"{project}; {built} modules built by lake")
        yield from _compiled(project)
    try:
        toolchain = find_toolchain(project)
    except TreewrightError as error:
        yield Check(_GROUP, _NATIVE, "failed", str(error))
        return
    if isinstance(toolchain, str):
        yield Check(_GROUP, _NATIVE, "absent", toolchain, "--lean native needs one; wasm does not")
        return
    if problem := too_old(toolchain):
        yield Check(_GROUP, _NATIVE, "warning", problem)
        return
    yield Check(_GROUP, _NATIVE, "ok", f"Lean {toolchain.name} in {toolchain.prefix}")
    if shutil.which("bwrap") is None:
        hint = "install bubblewrap for --sandbox"
        yield Check(_GROUP, "sandbox", "absent", "native Lean runs with your rights", hint)
    else:
        yield Check(_GROUP, "sandbox", "ok", "bubblewrap; used with --sandbox")


def _compiled(project: Path) -> Iterator[Check]:
    """What the bundled Lean has of the project's modules."""
    if not is_installed():
        return
    try:
        kept = kept_modules(project)
    except TreewrightError as error:
        yield Check(_GROUP, _COMPILED, "failed", str(error))
        return
    parts = [f"the bundled Lean has compiled {kept.compiled}"]
    if kept.untried:
        parts.append(f"{kept.untried} when they are needed")
    hint = ""
    if kept.wrong:
        parts.append(f"{len(kept.wrong)} cannot be imported")
        hint = "; ".join(list(kept.wrong.values())[:_MOST_SHOWN])
    yield Check(_GROUP, _COMPILED, "warning" if kept.wrong else "ok", ", ".join(parts), hint)


def bundled_lean(group: str, name: str, ready: str) -> Check:
    """A line about something that needs the bundled Lean; `ready` is what to say if it is there."""
    try:
        home = find_installed()
    except TreewrightError as error:
        return Check(group, name, "absent", "what runs it is missing", str(error))
    if home is None:
        return Check(group, name, "absent", "the bundled Lean is not installed yet", _HINT)
    return Check(group, name, "ok", ready)
