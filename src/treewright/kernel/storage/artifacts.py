"""Copies of the files that decisions rest on, with their sha256 checksums."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from treewright.kernel.storage import atomic, untrusted

DIRECTORY = "artifacts"
_CHUNK = 1 << 20


class Artifact(msgspec.Struct, frozen=True):
    """A file under the run's `artifacts/`: `path` is relative to the run directory."""

    path: str
    sha256: str
    bytes: int
    source: str


def sha256_file(path: Path, largest: int = untrusted.LARGEST_RESULTS) -> str:
    """Return the checksum of a regular file.

    Raises:
        OSError: The path is no regular file, such as a pipe of a candidate, or is too large.
    """
    digest = hashlib.sha256()
    with untrusted.open_plain(path, largest) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_text(text: str) -> str:
    """Return the checksum of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def keep(data: bytes, run_dir: Path, name: str, provenance: str) -> Artifact:
    """Write `artifacts/<name>` durably and return its record. `provenance` names its source."""
    target = run_dir / DIRECTORY / name
    write(target, data)
    return Artifact(
        path=target.relative_to(run_dir).as_posix(),
        sha256=hashlib.sha256(data).hexdigest(),
        bytes=len(data),
        source=provenance,
    )


def write(target: Path, data: bytes) -> None:
    """Write a read-only file durably, in place of any file or directory of that name."""
    atomic.make_directory(target.parent)
    if target.is_dir() and not target.is_symlink():
        untrusted.remove_tree(target)
    atomic.write_bytes(target, data, mode=0o444)
