"""The host program of a toolchain: compiled once, kept in the user's cache.

A judge runs this program, and its directory comes first where Lean looks for modules, so a change
of it could decide a verdict. All its files are sealed with the key of the module cache, and the
seal is compared at every start. A program with a broken seal is reported and compiled again.
Without a key the program is compiled for this process only.
"""

from __future__ import annotations

import atexit
import hashlib
import hmac
import logging
import secrets
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from treewright.kernel.errors import StorageError
from treewright.kernel.storage import file_lock
from treewright.kernel.storage.user_directories import cache_directory
from treewright.lean.hosts.host import with_stack
from treewright.lean.hosts.native.toolchain import Toolchain, surroundings
from treewright.lean.project.module_store import user_secret
from treewright.lean.session.errors import LeanError

SOURCE = Path(__file__).resolve().parent / "host.lean"
MAIN = "main.lean"
_MODULE = "TreewrightHost"
_PROGRAM = f"import {_MODULE}\n\nunsafe def main : IO Unit := Treewright.main\n"
_SEAL = "seal"
_SHARED = {".so", ".dylib"}
_SECONDS = 900.0
_log = logging.getLogger(__name__)


def digest(toolchain: Toolchain) -> str:
    """Return a digest of the toolchain's program and libraries, of `host.lean` and of the
    version."""
    library = toolchain.prefix / "lib"
    around = sorted([*library.glob("*"), *(library / "lean").glob("*")])
    shared = [path for path in around if not _SHARED.isdisjoint(path.suffixes) and path.is_file()]
    try:
        files = []
        for path in (toolchain.lean, SOURCE, *shared):
            about = path.stat()
            files.append((path, about.st_ino, about.st_size, about.st_ctime_ns))
        return _digest(toolchain, tuple(files))
    except OSError as error:
        raise LeanError(f"the toolchain cannot be read: {error}") from error


@cache
def _digest(toolchain: Toolchain, files: tuple[tuple[Path, int, int, int], ...]) -> str:
    """Once for the files as they are: a hundred megabytes are read."""
    whole = hashlib.sha256(hashlib.sha256(toolchain.said.encode()).digest())
    for path, *_ in files:
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


def compiled_host(toolchain: Toolchain) -> Path:
    """The directory with the compiled program; compiled now if it is not there as it was."""
    target, key = _place(toolchain)
    if _is_sealed(target, key):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with file_lock.holding(target.parent / "native.lock"):
        if not _is_sealed(target, key):
            if target.exists():
                _log.warning("%s is not what was put there; it is compiled again", target)
                shutil.rmtree(target)
            _log.warning(
                "treewright: compiling the native host for Lean %s (once, about a minute)",
                toolchain.name,
            )
            _keep(toolchain, target, key)
    return target


def programs(toolchain: Toolchain) -> list[Path]:
    """Return the files that a judge is started from: the toolchain's program and the host program.

    A program that can read the key can seal any file, so these files are compared as well.
    """
    program = compiled_host(toolchain)
    ours = [program, *sorted(program.iterdir())]
    return [toolchain.prefix, toolchain.lean.parent, toolchain.lean, *ours]


def changed_host(toolchain: Toolchain) -> str:
    """Return the program's directory if its seal is broken, else ''."""
    target, key = _place(toolchain)
    return "" if _is_sealed(target, key) else str(target)


def _place(toolchain: Toolchain) -> tuple[Path, bytes]:
    """Return the program's directory and its key. Each user of a shared cache has a directory."""
    try:
        directory, key = cache_directory() / "lean", user_secret()
    except StorageError as problem:
        directory, key = _for_this_process(str(problem))
    whose = hashlib.sha256(b"native host\0" + key).hexdigest()[:8]
    return directory / f"native-{toolchain.name}-{digest(toolchain)[:16]}-{whose}", key


@cache
def _for_this_process(problem: str) -> tuple[Path, bytes]:
    _log.warning("the native host is compiled for this command only: %s", problem)
    place = Path(tempfile.mkdtemp(prefix="treewright-native-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place, secrets.token_bytes(32)


def _keep(toolchain: Toolchain, target: Path, key: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="native-") as name:
        work = Path(name) / target.name
        work.mkdir()
        _compile(toolchain, work)
        (work / _SEAL).write_text(_seal(work, key), encoding="ascii")
        work.replace(target)


def _seal(directory: Path, key: bytes) -> str:
    """Return an HMAC of all files and of the directory's name, which names the toolchain."""
    whole = hmac.new(key, directory.name.encode() + b"\0", hashlib.sha256)
    for path in sorted(directory.iterdir()):
        if path.name != _SEAL:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{path.name}\0{content}\0".encode())
    return whole.hexdigest()


def _is_sealed(directory: Path, key: bytes) -> bool:
    try:
        found = (directory / _SEAL).read_bytes()
        return hmac.compare_digest(found, _seal(directory, key).encode())
    except OSError:
        return False


def _compile(toolchain: Toolchain, work: Path) -> None:
    shutil.copy(SOURCE, work / f"{_MODULE}.lean")
    (work / MAIN).write_text(_PROGRAM, encoding="utf-8")
    try:
        done = subprocess.run(
            with_stack([str(toolchain.lean), "-o", f"{_MODULE}.olean", f"{_MODULE}.lean"]),
            cwd=work,
            env=surroundings(toolchain),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LeanError(f"the native host could not be compiled: {error}") from error
    if done.returncode != 0:
        said = [line for line in done.stdout.splitlines() if "error" in line]
        problem = said[0] if said else f"code {done.returncode}"
        raise LeanError(f"Lean {toolchain.name} does not take the native host: {problem}")
