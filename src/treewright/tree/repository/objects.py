"""The files of a commit, and object names as git computes them: git-hash-object(1)."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from treewright.kernel.operating_system import BINARY, CLOSE_ON_EXEC, NO_FOLLOW, NON_BLOCK
from treewright.tree.repository.git import git

_SHA1_LENGTH = 40
_CHUNK = 1 << 20
_DIRECTORY_MODE = b"40000"
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


def file_name(path: Path, is_link: bool, length: int) -> str:
    """Return the object name of a file's bytes, or of a link's target.

    Args:
        path: The file. It is opened without following a link and without waiting at a pipe.
        is_link: Whether the target of a symbolic link is meant.
        length: The length of object names: 40 for SHA-1, 64 for SHA-256.
    """
    if is_link:
        return _name(b"blob", os.fsencode(path.readlink()), length)
    fd = os.open(path, os.O_RDONLY | BINARY | NO_FOLLOW | NON_BLOCK | CLOSE_ON_EXEC)
    with os.fdopen(fd, "rb") as file:
        size = os.fstat(fd).st_size
        digest = _digest(length, b"blob %d\0" % size)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def tree_name(entries: Mapping[str, tuple[str, str]], length: int) -> str:
    """Return the object name of a tree with these files: mode and name by path."""
    root: dict[bytes, Any] = {}
    for path, entry in entries.items():
        *parents, last = os.fsencode(path).split(b"/")
        directory = root
        for name in parents:
            directory = directory.setdefault(name, {})
            if not isinstance(directory, dict):
                raise ValueError(f"{path} is in a file")
        directory[last] = entry
    return _tree_name(root, length)


def commit_name(data: bytes, length: int) -> str:
    """Return the object name of a commit with this content."""
    return _name(b"commit", data, length)


def _tree_name(directory: Mapping[bytes, Any], length: int) -> str:
    lines: list[tuple[bytes, bytes]] = []
    for name, entry in directory.items():
        if isinstance(entry, dict):
            # Git sorts a directory as if its name ended with a slash.
            found = bytes.fromhex(_tree_name(entry, length))
            lines.append((name + b"/", b"%s %s\0%s" % (_DIRECTORY_MODE, name, found)))
        else:
            mode, object_name = entry
            found = bytes.fromhex(object_name)
            lines.append((name, b"%s %s\0%s" % (mode.encode(), name, found)))
    return _name(b"tree", b"".join(line for _, line in sorted(lines)), length)


def _name(kind: bytes, data: bytes, length: int) -> str:
    return _digest(length, b"%s %d\0%s" % (kind, len(data), data)).hexdigest()


def _digest(length: int, data: bytes) -> hashlib._Hash:
    kind = "sha1" if length == _SHA1_LENGTH else "sha256"
    return hashlib.new(kind, data, usedforsecurity=False)
