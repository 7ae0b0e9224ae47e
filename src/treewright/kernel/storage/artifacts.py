"""Copies of the files that decisions rest on, each with the sha256 that proves it."""

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
    """Of a plain file of at most that size; a candidate may have put a pipe in its place, which
    would never end. Anything else is an OSError."""
    digest = hashlib.sha256()
    with untrusted.open_plain(path, largest) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def keep(data: bytes, run_dir: Path, name: str, provenance: str) -> Artifact:
    """Durably writes `artifacts/<name>`."""
    target = run_dir / DIRECTORY / name
    write(target, data)
    return Artifact(
        path=target.relative_to(run_dir).as_posix(),
        sha256=hashlib.sha256(data).hexdigest(),
        bytes=len(data),
        source=provenance,
    )


def write(target: Path, data: bytes) -> None:
    """Puts `data` there, whatever is there now, and makes the directory if that was removed;
    nobody has a reason to write to it again."""
    atomic.make_directory(target.parent)
    if target.is_dir() and not target.is_symlink():
        untrusted.remove_tree(target)
    atomic.write_bytes(target, data, mode=0o444)
