"""The entry in `.git/info/exclude` that hides `.treewright` from `git status`."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.storage import atomic
from treewright.tree.repository import refs
from treewright.tree.repository.git import try_git


def hide_from_status(repo: Path, name: str) -> None:
    """Add `name/` to .git/info/exclude, unless git ignores it already."""
    exclude = refs.git_directories(repo)[1] / "info" / "exclude"
    line = f"/{name}/\n".encode()
    with atomic.storage_errors(exclude):
        before = exclude.read_bytes() if exclude.exists() else b""
    lines = before.splitlines(keepends=True)
    if line in lines and not any(each.startswith(b"!") for each in lines):
        return
    if try_git(repo, "check-ignore", "-q", f"{name}/x").returncode == 0:
        return
    with atomic.storage_errors(exclude):
        exclude.parent.mkdir(parents=True, exist_ok=True)
        if before and not before.endswith(b"\n"):
            before += b"\n"
        # The user may have a link there: the file it leads to is replaced.
        atomic.write_bytes(exclude.resolve(), before + line)
