"""The files of a commit, with modes and object names."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treewright.tree.repository.git import git

_SUBMODULE = "160000"


@dataclass(frozen=True, slots=True)
class Listing:
    """Every file of a commit by path, as mode and object name.

    With `attributes` the commit has `.gitattributes`: git may write other bytes than it stores.
    """

    entries: Mapping[str, tuple[str, str]]
    attributes: bool
    submodules: tuple[str, ...]

    @classmethod
    def of(cls, entries: Mapping[str, tuple[str, str]]) -> Listing:
        attributes = any(PurePosixPath(path).name == ".gitattributes" for path in entries)
        submodules = tuple(path for path, (mode, _) in entries.items() if mode == _SUBMODULE)
        return cls(entries, attributes, submodules)


@functools.lru_cache(maxsize=8)
def listing(repo: Path, commit: str) -> Listing:
    """Return the files of a commit, which never changes; the last eight are kept."""
    return Listing.of(parse_listing(git(repo, "ls-tree", "-r", "-z", commit)))


def parse_listing(text: str) -> dict[str, tuple[str, str]]:
    """Return mode and object name by path from the output of `git ls-tree -r -z`."""
    entries: dict[str, tuple[str, str]] = {}
    for line in text.split("\0"):
        facts, _, path = line.partition("\t")
        if path:
            mode, _, name = facts.split(" ")
            entries[path] = mode, name
    return entries
