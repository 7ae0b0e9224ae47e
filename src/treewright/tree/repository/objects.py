"""Git's objects, named and read without a process: git-hash-object(1), gitformat-loose(5)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from treewright.kernel.operating_system import BINARY, CLOSE_ON_EXEC, NO_FOLLOW, NON_BLOCK

_SHA1 = 40
_CHUNK = 1 << 20
_DIRECTORY = b"40000"


def file_name(path: Path, is_link: bool, length: int) -> str:
    """What git would call the bytes of a file, or of where a link leads. Names have `length`."""
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
    """What git calls a tree with these files: path -> mode and name."""
    root: dict[bytes, Any] = {}
    for path, facts in entries.items():
        *way, last = os.fsencode(path).split(b"/")
        place = root
        for name in way:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise ValueError(f"{path} is in a file")
        place[last] = facts
    return _tree_name(root, length)


def _tree_name(directory: Mapping[bytes, Any], length: int) -> str:
    lines: list[tuple[bytes, bytes]] = []
    for name, inside in directory.items():
        if isinstance(inside, dict):
            # Git sorts a directory as if its name ended with a slash.
            found = bytes.fromhex(_tree_name(inside, length))
            lines.append((name + b"/", b"%s %s\0%s" % (_DIRECTORY, name, found)))
        else:
            mode, object_name = inside
            found = bytes.fromhex(object_name)
            lines.append((name, b"%s %s\0%s" % (mode.encode(), name, found)))
    return _name(b"tree", b"".join(line for _, line in sorted(lines)), length)


def commit_name(data: bytes, length: int) -> str:
    """What git calls a commit of which it says this."""
    return _name(b"commit", data, length)


def _name(kind: bytes, data: bytes, length: int) -> str:
    return _digest(length, b"%s %d\0%s" % (kind, len(data), data)).hexdigest()


def _digest(length: int, data: bytes) -> hashlib._Hash:
    kind = "sha1" if length == _SHA1 else "sha256"
    return hashlib.new(kind, data, usedforsecurity=False)
