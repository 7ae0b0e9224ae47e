"""What is in a commit: every file with its mode and object name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treewright.tree.repository.git import git

_SUBMODULE = "160000"


@dataclass(frozen=True, slots=True)
class Listing:
    """`attributes`: the commit says itself that git writes other bytes than it keeps, perhaps."""

    entries: Mapping[str, tuple[str, str]]
    attributes: bool
    submodules: tuple[str, ...]


@functools.lru_cache(maxsize=4)
def listing(repo: Path, commit: str) -> Listing:
    """A commit never changes, and is looked at after each of its commands. May be large."""
    entries: dict[str, tuple[str, str]] = {}
    for line in git(repo, "ls-tree", "-r", "-z", commit).split("\0"):
        facts, _, path = line.partition("\t")
        if path:
            mode, _, name = facts.split(" ")
            entries[path] = mode, name
    attributes = any(PurePosixPath(path).name == ".gitattributes" for path in entries)
    submodules = tuple(path for path, (mode, _) in entries.items() if mode == _SUBMODULE)
    return Listing(entries, attributes, submodules)
