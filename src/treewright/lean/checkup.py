"""What `treewright doctor` says about the bundled Lean: is it there, and is it unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from treewright.kernel.checkup import Check
from treewright.kernel.errors import TreewrightError
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.install import find_installed, installed_path, is_installed
from treewright.lean.wasm.manifest import verify_home

_GROUP = "lean"
_NAME = "bundled Lean"
_HINT = "treewright lean install (or the first run) fetches it"


def checks(_repo: Path | None) -> Iterator[Check]:
    """Reads every file of the home; starts and fetches nothing."""
    if not is_installed():
        yield Check(_GROUP, _NAME, "absent", "not installed yet", _HINT)
        return
    path = installed_path()
    try:
        count = verify_home(LeanHome(path, path), full=True)
    except TreewrightError as error:
        yield Check(_GROUP, _NAME, "failed", str(error))
    else:
        yield bundled_lean(_GROUP, _NAME, f"{count} files verified in {path}")


def bundled_lean(group: str, name: str, ready: str) -> Check:
    """A line about something that needs the bundled Lean; `ready` is what to say if it is there."""
    try:
        home = find_installed()
    except TreewrightError as error:
        return Check(group, name, "absent", "what runs it is missing", str(error))
    if home is None:
        return Check(group, name, "absent", "the bundled Lean is not installed yet", _HINT)
    return Check(group, name, "ok", ready)
