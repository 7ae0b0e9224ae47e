"""The check that a root checkout, which a sweep runs from, still holds the root commit.

The checkout is compared when the sweep has ended. Files that the sweep adds there are ignored,
unless an interpreter would load them as code: such code can have measured the later configs.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.text.printable import format_paths
from treewright.tree.guard.protected_files import find_changed

CODE_SUFFIXES = frozenset(
    {
        ".py", ".pyc", ".pyd", ".pth", ".so", ".dylib", ".js", ".cjs", ".mjs", ".node", ".rb",
        ".pl", ".pm", ".lua", ".jl", ".r", ".sh",
    }
)  # fmt: skip
"""Suffixes of files that interpreters find by name when they load code."""

Snapshot = Mapping[str, tuple[int, ...]]
"""The mode, inode, size and times of every file, by path."""


@dataclass(frozen=True, slots=True)
class RootVersion:
    """The commit that a run started from, and the paths in it that are protected."""

    repo: Path
    commit: str
    protected: Sequence[str] = ()


def take_snapshot(directory: Path) -> Snapshot:
    """Return the state of every file below a directory, without following links.

    Directories and files that cannot be read count as missing.
    """
    found: dict[str, tuple[int, ...]] = {}
    pending = [directory]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                    continue
                at = entry.stat(follow_symlinks=False)
                path = Path(entry.path).relative_to(directory).as_posix()
                found[path] = (at.st_mode, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns)
    return found


def describe_changes(root: RootVersion, directory: Path, before: Snapshot) -> str:
    """Return one line about changed files of the commit or added code; "" if there are none."""
    now = take_snapshot(directory)
    touched = [path for path, state in before.items() if now.get(path) != state]
    # Contents are compared: a file that was only touched has not changed.
    changed = find_changed(root.repo, directory, root.commit, [*root.protected, *touched])
    if changed:
        return f"{format_paths(changed)} of the sweep's own checkout changed while it ran"
    new = now.keys() - before.keys()
    added = [os.fsencode(path) for path in new if _is_code(directory / path, now[path][0])]
    if added:
        shown = format_paths([path.decode("utf-8", "replace") for path in sorted(added)])
        return f"{shown} was added to the sweep's own checkout while it ran, and is code"
    return ""


def _is_code(path: Path, mode: int) -> bool:
    """Return whether an added file is code. A link to a directory may be a whole package.

    A `.pyc` in `__pycache__` is not: Python loads it only beside its source.
    """
    if path.suffix == ".pyc" and path.parent.name == "__pycache__":
        return False
    candidates = [path]
    if stat.S_ISLNK(mode):
        with contextlib.suppress(OSError):
            candidates += path.iterdir()
    return any(each.suffix.lower() in CODE_SUFFIXES for each in candidates)
