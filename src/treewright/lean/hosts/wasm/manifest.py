"""Checks that the files of an installed Lean are the installed ones.

`manifest.json` lists every file with its sha256 and its `stat` values at that time. The quick check
compares names and `stat` values, and reads only files with changed values. The digest of all
content hashes is a constant here, so a manifest that was edited together with a file is noticed.
The quick check assumes that a file with unchanged size, times and inode has unchanged content;
`full=True` reads every file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import msgspec

from treewright.kernel.errors import StorageError, TreewrightError
from treewright.kernel.storage import atomic

MANIFEST = "manifest.json"
# `contents_digest` of the home that `install` makes of the package. Other patches make other
# files: `install` then stops and says which digest belongs here.
CONTENTS = "7a56656b41cf98a460bda893a8c7bce2529baa8136d8ac38d42025b3613c872c"
REPAIR = "treewright lean install --repair"
_READERS = 4


class HomeChanged(TreewrightError):
    """A file of the installed Lean was changed, removed or added."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; run: {REPAIR}")
        self.problem = problem


class FileRecord(msgspec.Struct, frozen=True, array_like=True):
    """A file's content, and how `stat` knows it. No call can set `changed_ns` back."""

    sha256: str
    size: int
    modified_ns: int
    changed_ns: int
    inode: int


Files: TypeAlias = dict[str, FileRecord]

# Files that this process has read, for installations with a read-only manifest.
_seen: dict[Path, Files] = {}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, FileRecord]).decode


def contents_digest(files: Files) -> str:
    """One sha256 over the names and content hashes of all files."""
    lines = "".join(f"{files[name].sha256}  {name}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()


def write_manifest(home: Path) -> Files:
    """Reads and records every file of a home that was just unpacked."""
    found = _look(home)
    hashes = _read_all(home, found)
    files = {name: _record(hashes[name], found[name]) for name in found}
    atomic.write_bytes(home / MANIFEST, _encode(files))
    return files


def home_digest(home: Path) -> str:
    """Return the recorded digest of the home's files; `verify_home` checks that it is true."""
    return contents_digest(_load(home))


def verify_home(path: Path, *, full: bool = False) -> int:
    """Check that the files of a home are the installed ones, and return their number.

    Args:
        path: the home.
        full: whether all files are read; touched files always are.

    Raises:
        HomeChanged: a file was changed, removed or added.
    """
    recorded = _load(path)
    if contents_digest(recorded) != CONTENTS:
        raise HomeChanged(f"{path / MANIFEST} was changed or is of another Lean")
    found = _look(path)
    if found.keys() != recorded.keys():
        missing = min(recorded.keys() - found.keys(), default="")
        name = missing or min(found.keys() - recorded.keys())
        raise HomeChanged(f"{path / name} {'is missing' if missing else 'does not belong there'}")
    known = _seen.get(path, {})

    def trusted(name: str) -> bool:
        now = _record(recorded[name].sha256, found[name])
        return now == recorded[name] or now == known.get(name)

    suspects = [name for name in found if full or not trusted(name)]
    if suspects:
        _check_contents(path, recorded, {name: found[name] for name in suspects})
    return len(found)


def _check_contents(home: Path, recorded: Files, suspects: dict[str, os.stat_result]) -> None:
    hashes = _read_all(home, suspects)
    for name in sorted(suspects):
        if hashes[name] != recorded[name].sha256:
            raise HomeChanged(f"{home / name} is not what was installed")
    checked = {name: _record(hashes[name], status) for name, status in suspects.items()}
    if any(recorded[name] != record for name, record in checked.items()):
        _seen.setdefault(home, {}).update(checked)
        with contextlib.suppress(StorageError):  # a read-only cache: it is read again next time
            atomic.write_bytes(home / MANIFEST, _encode(recorded | checked))


def _load(home: Path) -> Files:
    try:
        return _decode((home / MANIFEST).read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise HomeChanged(f"cannot read {home / MANIFEST} ({error})") from error


def _look(home: Path) -> dict[str, os.stat_result]:
    """Every file of the home by its name in it, but the manifest and one being written."""
    found: dict[str, os.stat_result] = {}
    pending = [(os.fspath(home), "")]
    while pending:
        directory, prefix = pending.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = prefix + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, f"{name}/"))
                    elif prefix or not (name == MANIFEST or atomic.is_temporary(name)):
                        found[name] = entry.stat(follow_symlinks=False)
        except OSError as error:
            raise HomeChanged(f"cannot read {directory} ({error})") from error
    return found


def _record(sha256: str, status: os.stat_result) -> FileRecord:
    return FileRecord(sha256, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _read_all(home: Path, names: dict[str, os.stat_result]) -> dict[str, str]:
    def read(name: str) -> str:
        if not stat.S_ISREG(names[name].st_mode):
            raise HomeChanged(f"{home / name} is not a plain file")
        try:
            with (home / name).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise HomeChanged(f"cannot read {home / name} ({error})") from error

    with ThreadPoolExecutor(_READERS) as pool:
        results: Iterable[str] = pool.map(read, names)
        return dict(zip(names, results, strict=True))
