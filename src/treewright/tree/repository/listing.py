"""What is in a commit: every file with its mode and object name."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treewright.tree.repository.git import git

_SUBMODULE = "160000"
_MOST_KEPT = 8


@dataclass(frozen=True, slots=True)
class Listing:
    """`attributes`: the commit says itself that git writes other bytes than it keeps, perhaps."""

    entries: Mapping[str, tuple[str, str]]
    attributes: bool
    submodules: tuple[str, ...]

    @classmethod
    def of(cls, entries: Mapping[str, tuple[str, str]]) -> Listing:
        attributes = any(PurePosixPath(path).name == ".gitattributes" for path in entries)
        submodules = tuple(path for path, (mode, _) in entries.items() if mode == _SUBMODULE)
        return cls(entries, attributes, submodules)


@dataclass(frozen=True, slots=True)
class Change:
    """A file of a commit that is another one in the next, or (`entry` is None) not there."""

    path: str
    entry: tuple[str, str] | None


_kept: OrderedDict[tuple[Path, str], Listing] = OrderedDict()
_turn = threading.Lock()


def listing(repo: Path, commit: str) -> Listing:
    """A commit never changes, and is looked at after each of its commands. May be large."""
    with _turn:
        found = _kept.get((repo, commit))
        if found is not None:
            _kept.move_to_end((repo, commit))
            return found
    return _keep(repo, commit, Listing.of(read_listing(git(repo, "ls-tree", "-r", "-z", commit))))


def read_listing(said: str) -> dict[str, tuple[str, str]]:
    """What `git ls-tree -r -z` answers: path -> mode and name."""
    entries: dict[str, tuple[str, str]] = {}
    for line in said.split("\0"):
        facts, _, path = line.partition("\t")
        if path:
            mode, _, name = facts.split(" ")
            entries[path] = mode, name
    return entries


def _keep(repo: Path, commit: str, found: Listing) -> Listing:
    with _turn:
        _kept[repo, commit] = found
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return found
