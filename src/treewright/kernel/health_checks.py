"""The checks of `treewright doctor`: their record, and the checks of the machine itself.

A package that needs other programs or services has a function `checks(repo)` in a module that
`cli/doctor.py` names. A check changes nothing.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

import treewright
from treewright.kernel.operating_system import BINARY, IS_POSIX, WINDOWS_LIMITATIONS
from treewright.kernel.procs.containment import writable_parent
from treewright.kernel.procs.proctree import HAS_PROC
from treewright.kernel.storage.atomic import fsync_directory

Status = Literal["ok", "absent", "warning", "failed"]

LOWEST_PYTHON = (3, 11)
_LOW_DISK_BYTES = 1 << 30
_SLOW_SYNC_SECONDS = 0.05

EXTRAS: dict[str, str] = {
    "dask": "evaluations on a cluster (--parallel-backend dask)",
    "dashboard": "every search live in a browser (`treewright dashboard`)",
    "lean": "proofs with the bundled Lean (`treewright prove`, `bank`, `bg`, `lean`)",
    "llm": "chat endpoints as agents (`openai`), as an idea source (`llm`) and for `sketch`",
    "mlflow": "searches as runs of an MLflow tracking server (`treewright mlflow`)",
    "mcp": "Lean and searches as tools for coding agents (`treewright mcp`)",
    "premises": "premise search by meaning (`treewright premises`); by words it works without",
}
"""The features of each optional extra. An extra that is missing here is reported too."""


class Check(msgspec.Struct, frozen=True):
    """One line of the report.

    Attributes:
        status: `failed` for a required part that does not work, `absent` for an optional part that
            is missing.
        hint: The next step, or the feature that the missing part would enable.
    """

    group: str
    name: str
    status: Status
    detail: str
    hint: str = ""


def checks(repo: Path | None) -> Iterator[Check]:
    """Check the interpreter, the extras, the file system and the control over processes."""
    yield _python()
    yield from _dependencies()
    directory = repo or Path.cwd()
    yield _disk(directory)
    yield from _file_system(directory)
    yield from _processes()


def _python() -> Check:
    version = platform.python_version()
    ok = sys.version_info >= LOWEST_PYTHON
    wanted = ".".join(map(str, LOWEST_PYTHON))
    return Check(
        "system",
        "python",
        "ok" if ok else "failed",
        f"{version} at {sys.executable}; treewright {treewright.__version__}",
        "" if ok else f"install Python {wanted} or newer",
    )


def _dependencies() -> Iterator[Check]:
    """Check the dependencies that the metadata of the package lists."""
    for extra, names in sorted(_requirements().items()):
        found = {name: _version(name) for name in names}
        missing = [name for name, version in found.items() if version is None]
        versions = ", ".join(f"{name} {version}" for name, version in found.items() if version)
        if not extra:
            status: Status = "failed" if missing else "ok"
            hint = "reinstall treewright" if missing else ""
            detail = f"missing: {', '.join(missing)}" if missing else versions
            yield Check("system", "core packages", status, detail, hint)
            continue
        enables = EXTRAS.get(extra, "the features that name this extra")
        if missing:
            hint = f"pip install 'treewright[{extra}]' enables {enables}"
            yield Check("extras", extra, "absent", f"missing: {', '.join(missing)}", hint)
        else:
            yield Check("extras", extra, "ok", versions)


def _requirements() -> dict[str, list[str]]:
    """Return the packages of each extra (`""` is the core), without the extra `all`."""
    found: dict[str, list[str]] = {}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for requirement in importlib.metadata.requires("treewright") or []:
            name = re.match(r"[A-Za-z0-9._-]+", requirement)
            extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", requirement)
            of = extra[1] if extra else ""
            if name and of != "all":
                found.setdefault(of, []).append(name[0])
    return found


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _disk(directory: Path) -> Check:
    free = shutil.disk_usage(directory).free
    low = free < _LOW_DISK_BYTES
    return Check(
        "system",
        "disk space",
        "warning" if low else "ok",
        f"{free / (1 << 30):.1f} GiB free at {directory}",
        "every candidate under way is a checkout of its own; free some space" if low else "",
    )


def _file_system(directory: Path) -> Iterator[Check]:
    """Try the operations of durable runs, in a temporary directory."""
    try:
        scratch = tempfile.TemporaryDirectory(prefix=".treewright-doctor-", dir=directory)
    except OSError as error:
        yield Check(
            "system",
            "file system",
            "failed",
            f"cannot write in {directory}: {error.strerror}",
            "make the repository writable: runs live in its .treewright directory",
        )
        return
    with scratch as name:
        yield _try("hard links", _try_link, Path(name), "one owner a run (the lease)")
        yield _try("fsync", _try_sync, Path(name), "records that survive a power cut")
        yield _try("heartbeat", _try_utime, Path(name), "noticing a dead owner")


def _try(name: str, probe, directory: Path, purpose: str) -> Check:
    try:
        return Check("system", name, "ok", probe(directory))
    except OSError as error:
        return Check(
            "system",
            name,
            "failed",
            f"not possible here: {error.strerror or error}",
            f"needed for {purpose}; put the repository on another file system",
        )


def _try_link(directory: Path) -> str:
    first, second = directory / "first", directory / "second"
    first.touch()
    os.link(first, second)
    return "exclusive creation works"


def _try_sync(directory: Path) -> str:
    taken = []
    fd = os.open(directory / "synced", os.O_WRONLY | os.O_CREAT | os.O_APPEND | BINARY)
    try:
        for _ in range(5):
            os.write(fd, b"x" * 512)
            started = time.perf_counter()
            os.fsync(fd)
            taken.append(time.perf_counter() - started)
    finally:
        os.close(fd)
    fsync_directory(directory)
    median = sorted(taken)[len(taken) // 2]
    slow = "; slow, so expect this much per recorded event" if median > _SLOW_SYNC_SECONDS else ""
    return f"{1000 * median:.2f} ms a write{slow}"


def _try_utime(directory: Path) -> str:
    path = directory / "beat"
    path.touch()
    if os.utime not in os.supports_fd:
        os.utime(path)
        return "file times can be set"
    fd = os.open(path, os.O_RDONLY)
    try:
        os.utime(fd)
    finally:
        os.close(fd)
    return "file times can be set through a descriptor"


def _processes() -> Iterator[Check]:
    """Check how a candidate's processes can be found, ended and limited."""
    found = "/proc" if HAS_PROC else "psutil"
    yield Check("system", "process trees", "ok", f"{found} finds every descendant of a command")
    if not IS_POSIX:
        yield Check(
            "system",
            "operating system",
            "warning",
            f"not POSIX: {'; '.join(WINDOWS_LIMITATIONS)}",
            "the core runs; WSL 2 has the rest, and the commands that work with Lean",
        )
    with contextlib.suppress(ImportError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield Check("system", "rlimits", "ok", f"available; open files {soft} (at most {hard})")
    yield _cgroup()


def _cgroup() -> Check:
    parent = writable_parent()
    if parent is not None:
        return Check("system", "cgroup v2", "ok", f"usable below {parent}")
    return Check(
        "system",
        "cgroup v2",
        "absent",
        "not delegated to this user",
        "would keep a command's processes and memory inside a fence they cannot leave",
    )
