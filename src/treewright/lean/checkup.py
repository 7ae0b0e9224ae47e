"""What `treewright doctor` says about the bundled Lean. Nothing is started or fetched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from treewright.kernel.checkup import Check
from treewright.kernel.errors import TreewrightError
from treewright.lean.wasm.install import find_installed


def checks(repo: Path | None) -> Iterator[Check]:
    yield bundled_lean("lean", "bundled Lean")


def bundled_lean(group: str, name: str, ready: str = "") -> Check:
    """A line about something that needs the bundled Lean; `ready` is what to say if it is there."""
    try:
        home = find_installed()
    except TreewrightError as error:
        return Check(group, name, "absent", "what runs it is missing", str(error))
    if home is None:
        hint = "treewright lean install (or the first run) fetches it"
        return Check(group, name, "absent", "the bundled Lean is not installed yet", hint)
    return Check(group, name, "ok", ready or f"installed at {home.path}")
