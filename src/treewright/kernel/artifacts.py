"""Copies of the files that decisions rest on, each with the sha256 that proves it."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

import msgspec

from treewright.kernel import atomic

_CHUNK = 1 << 20


class Artifact(msgspec.Struct, frozen=True):
    """A file under the run's `artifacts/`: `path` is relative to the run directory."""

    path: str
    sha256: str
    bytes: int
    source: str


def sha256_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def keep(source: Path, run_dir: Path, name: str, provenance: str) -> Artifact:
    """Durably copies `source` to `artifacts/<name>`, in one pass that also hashes it."""
    target = run_dir / "artifacts" / name
    atomic.make_directory(target.parent)
    temp = target.with_name(f".tw-tmp-{os.getpid()}-{secrets.token_hex(4)}")
    digest, size = hashlib.sha256(), 0
    with atomic.storage_errors(target):
        try:
            with source.open("rb") as reader, temp.open("wb") as writer:
                while chunk := reader.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
                    writer.write(chunk)
                writer.flush()
                os.fsync(writer.fileno())
            temp.rename(target)
            atomic.fsync_directory(target.parent)
        finally:
            temp.unlink(missing_ok=True)
    return Artifact(
        path=target.relative_to(run_dir).as_posix(),
        sha256=digest.hexdigest(),
        bytes=size,
        source=provenance,
    )
