"""The checkout that a sweep has to itself: is it still what its commit says?

It is looked at when the sweep has ended. What the sweep leaves there is nobody's business, but for
files that an interpreter would take for code: the next config may have been measured by them.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from treewright.kernel.text.path_list import format_paths
from treewright.tree.guard import protected_files

if TYPE_CHECKING:
    from treewright.tree.evaluating.sweep import RootVersion

CODE = frozenset(
    {
        ".py", ".pyc", ".pyd", ".pth", ".so", ".dylib", ".js", ".cjs", ".mjs", ".node", ".rb",
        ".pl", ".pm", ".lua", ".jl", ".r", ".sh",
    }
)  # fmt: skip
"""Endings of files that are found by their name when code is loaded."""

Standing = Mapping[str, tuple[int, ...]]
"""Every file by its path, with what the system says of it."""


def standing(directory: Path) -> Standing:
    """Links are not followed. What cannot be read is as good as gone."""
    found: dict[str, tuple[int, ...]] = {}
    below = [directory]
    while below:
        with contextlib.suppress(OSError), os.scandir(below.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below.append(Path(entry.path))
                    continue
                at = entry.stat(follow_symlinks=False)
                path = Path(entry.path).relative_to(directory).as_posix()
                found[path] = (at.st_mode, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns)
    return found


def problem(root: RootVersion, directory: Path, before: Standing) -> str:
    """One line if a file of the commit is another one now, or code was added; "" if not."""
    now = standing(directory)
    touched = [path for path, facts in before.items() if now.get(path) != facts]
    # Contents are compared: what was only touched is as it was.
    compared = [*root.protected, *touched]
    changed = protected_files.tampered(root.repo, directory, root.commit, compared)
    if changed:
        return f"{format_paths(changed)} of the sweep's own checkout changed while it ran"
    new = now.keys() - before.keys()
    added = [os.fsencode(path) for path in new if _is_code(directory / path, now[path][0])]
    if added:
        shown = format_paths([path.decode("utf-8", "replace") for path in sorted(added)])
        return f"{shown} was added to the sweep's own checkout while it ran, and is code"
    return ""


def _is_code(path: Path, mode: int) -> bool:
    """A link may be a whole package. Python's caches count only beside their source."""
    if path.suffix == ".pyc" and path.parent.name == "__pycache__":
        return False
    named = [path]
    if stat.S_ISLNK(mode):
        with contextlib.suppress(OSError):
            named += path.iterdir()
    return any(each.suffix.lower() in CODE for each in named)
