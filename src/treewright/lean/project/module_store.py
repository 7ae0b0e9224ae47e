"""The cache of compiled modules in the user's cache directory.

A file holds one compiled module, the reason why a module does not compile, or the imports of one
text. Its first line is a label with a seal: an HMAC of key, name and bytes. The key of the HMAC is
in the user's state directory, so that a program that can only write to the cache cannot add a valid
entry. The seal is compared at every read; a file with a wrong seal is reported and made again.
Without a key the cache is not used. Files are written atomically, and a lock keeps two processes
from compiling the same module.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import msgspec

from treewright.kernel.errors import StorageError
from treewright.kernel.storage import atomic, file_lock, untrusted
from treewright.kernel.storage.user_directories import cache_directory, state_directory

FORMAT = 2  # 1 had no seal
KEY_FILE = "module-cache.key"
_KEY_BYTES = 32
MOST_BYTES = 4 << 30
"""The most bytes that the cache holds; beyond it, the least recently used files are removed."""


class Header(msgspec.Struct, frozen=True):
    """The imports of a text; `problem` is the parser's error."""

    imports: tuple[str, ...]
    problem: str = ""


class _Label(msgspec.Struct, frozen=True):
    format: int
    key: str
    module: str
    seal: str = ""


class Poisoned(Exception):
    """A file of the cache has a wrong seal."""


class ModuleStore:
    """The cache. Keys are sha256 sums of everything that decides the compiled bytes.

    Args:
        directory: where the files are (default: the user's cache).
        secret: the key of the seals (default: the user's).
    """

    def __init__(self, directory: Path | None = None, secret: bytes | None = None) -> None:
        self._directory = directory or cache_directory() / "modules"
        self._given_secret = secret

    @cached_property
    def _seal_with(self) -> tuple[bytes, str]:
        """The key, or b'' and why there is none."""
        if self._given_secret is not None:
            return self._given_secret, ""
        try:
            return user_secret(), ""
        except StorageError as error:
            return b"", str(error)

    @property
    def problem(self) -> str:
        """Why nothing is kept, or ''."""
        return self._seal_with[1]

    def read(self, key: str, module: str) -> bytes | None:
        """The bytes, None if they are not there; Poisoned if something else is."""
        return self._read(self._path(key), key, module)

    def write(self, key: str, module: str, data: bytes) -> None:
        """Keep a compiled module, and remove the oldest files beyond the limit."""
        self._write(self._path(key), key, module, data)
        self._trim()

    def read_problem(self, key: str, module: str) -> str | None:
        """Why a module does not compile, as it was found before."""
        data = self._read(self._problem(key), key, module)
        return None if data is None else data.decode()

    def write_problem(self, key: str, module: str, problem: str) -> None:
        """Keep the reason why a module does not compile."""
        self._write(self._problem(key), key, module, problem.encode())

    @contextlib.contextmanager
    def compiling(self, key: str) -> Iterator[None]:
        """Hold the lock for a module; other processes that need the same module wait."""
        if self.problem:
            yield
            return
        path = self._directory / "locks" / key[:3]
        atomic.make_directory(path.parent)
        with atomic.storage_errors(path), file_lock.holding(path):
            yield

    def read_header(self, key: str) -> Header | None:
        """Return the imports of a text, or None if they are not there."""
        try:
            data = self._read(self._header(key), key, "")
            return None if data is None else msgspec.json.decode(data, type=Header)
        except (Poisoned, msgspec.MsgspecError):
            return None  # reading a header again costs next to nothing

    def write_header(self, key: str, header: Header) -> None:
        """Keep the imports of a text."""
        self._write(self._header(key), key, "", msgspec.json.encode(header))

    def _read(self, path: Path, key: str, module: str) -> bytes | None:
        if self.problem:
            return None
        try:
            content = untrusted.read(path, MOST_BYTES)
        except FileNotFoundError:
            return None
        except untrusted.NotPlain as error:
            raise Poisoned(str(error)) from None
        with contextlib.suppress(OSError):
            os.utime(path)  # it was used now
        line, _, data = content.partition(b"\n")
        try:
            label = msgspec.json.decode(line, type=_Label)
        except msgspec.MsgspecError:
            raise Poisoned(f"{path} is no compiled module") from None
        if label.format < FORMAT:
            return None
        right = self._label(path, key, module, data)
        same = hmac.compare_digest(label.seal.encode(), right.seal.encode())
        if not same or label != right:
            raise Poisoned(f"{path} is not what was put there")
        return data

    def _write(self, path: Path, key: str, module: str, data: bytes) -> None:
        if self.problem:
            return
        label = msgspec.json.encode(self._label(path, key, module, data))
        atomic.make_directory(path.parent)
        atomic.write_bytes(path, label + b"\n" + data)

    def _trim(self) -> None:
        """Others may do the same meanwhile, or read: a file that is gone is one to make again."""
        found: list[tuple[int, int, Path]] = []
        for path in self._directory.glob("??/*.*"):
            with contextlib.suppress(OSError):
                about = path.stat()
                found.append((about.st_mtime_ns, about.st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= MOST_BYTES:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size

    def _label(self, path: Path, key: str, module: str, data: bytes) -> _Label:
        """The seal is over what kind of file it is too: a header is no module."""
        about = msgspec.json.encode([FORMAT, path.suffix, key, module, digest_of(data)])
        seal = hmac.new(self._seal_with[0], about, hashlib.sha256)
        return _Label(FORMAT, key, module, seal.hexdigest())

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.module"

    def _problem(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.problem"

    def _header(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.header"


def digest_of(data: bytes) -> str:
    """Return the sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def user_secret() -> bytes:
    """Return the key of the user's seals; make it if there is none.

    Raises:
        StorageError: no key can be kept from other users.
    """
    path = state_directory() / KEY_FILE
    with atomic.storage_errors(path):
        if (found := _private(path)) is not None:
            return found
        atomic.make_directory(path.parent)
        fresh = secrets.token_bytes(_KEY_BYTES)
        if not atomic.create_exclusive(path, fresh, 0o600) and _private(path) is None:
            atomic.write_bytes(path, fresh, 0o600)  # it is damaged, or others could read it
        if (found := _private(path)) is not None:  # another process may have written it first
            return found
    raise StorageError(f"{path} cannot be kept from other users")


def _private(path: Path) -> bytes | None:
    """Return the key if its file can be read and written by this user only, else None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        mine = about.st_uid == os.getuid() and not about.st_mode & 0o077
        data = file.read(_KEY_BYTES + 1) if stat.S_ISREG(about.st_mode) and mine else b""
    return data if len(data) == _KEY_BYTES else None
