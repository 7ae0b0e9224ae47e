"""What `treewright doctor` says about the bundled Lean: is it there, and is it unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from treewright.kernel.checkup import Check
from treewright.kernel.errors import TreewrightError
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.install import installed_path, is_installed
from treewright.lean.wasm.manifest import verify_home

_GROUP = "lean"
_NAME = "bundled Lean"


def checks(_repo: Path | None) -> Iterator[Check]:
    """Reads every file of the home; starts and fetches nothing."""
    if not is_installed():
        hint = "treewright lean install (or the first run) fetches it"
        yield Check(_GROUP, _NAME, "absent", "not installed yet", hint)
        return
    path = installed_path()
    try:
        count = verify_home(LeanHome(path, path), full=True)
    except TreewrightError as error:
        yield Check(_GROUP, _NAME, "failed", str(error))
    else:
        yield Check(_GROUP, _NAME, "ok", f"{count} files verified in {path}")
