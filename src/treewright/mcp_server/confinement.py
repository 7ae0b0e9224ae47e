"""Access to files, directories and repositories inside the roots, and to none outside them.

A path is resolved first, so links inside a root work, and the result must be inside a root. The
file is then opened step by step from the root without following links, so that a directory that is
replaced in the meantime leads nowhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.kernel.storage.run_directory import STATE_DIR
from treewright.mcp_server.tool import MAX_TEXT

_SKIPPED = frozenset({".lake", ".git", STATE_DIR, "build", "node_modules"})
MAX_FILES = 20_000


class Confinement:
    """The roots, resolved once. Relative paths start at the first root."""

    def __init__(self, roots: Sequence[Path]) -> None:
        for root in roots:
            if not root.is_dir():
                raise UsageError(f"there is no directory {root}; give one with --root")
        self.roots = tuple(dict.fromkeys(root.resolve() for root in roots))

    @property
    def first(self) -> Path:
        return self.roots[0]

    def resolve(self, given: str) -> Path:
        """Return the resolved path.

        Raises:
            UsageError: The path does not exist or is outside the roots.
        """
        if "\0" in given:
            raise UsageError("a path has no NUL character in it")
        try:
            path = (self.first / given).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            raise UsageError(f"there is no {given!r} inside the roots") from None
        if self.root_of(path) is None:
            raise UsageError(f"there is no {given!r} inside the roots")
        return path

    def root_of(self, path: Path) -> Path | None:
        """Return the root of a resolved path, or None."""
        return next((root for root in self.roots if path.is_relative_to(root)), None)

    def shown(self, path: Path) -> str:
        """Return a path as a client names it."""
        return (
            path.relative_to(self.first).as_posix()
            if path.is_relative_to(self.first)
            else str(path)
        )

    def read(self, path: Path, largest: int = MAX_TEXT) -> str:
        """Return the text of a resolved path; an error unless it is a regular UTF-8 file."""
        name = self.shown(path)
        root = self.root_of(path)
        if root is None:
            raise UsageError(f"{name!r} is outside the roots")
        try:
            descriptor = _opened(root, path.relative_to(root).parts)
        except OSError as error:
            raise UsageError(f"cannot read {name!r}: {error.strerror}") from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError(f"{name!r} is not a file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(largest + 1)
        finally:
            os.close(descriptor)
        if len(data) > largest:
            raise UsageError(f"{name!r} is larger than {largest:,} bytes")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"{name!r} is not UTF-8 (byte {error.start})") from None

    def read_or_none(self, path: Path) -> str | None:
        """Return the text of a file, or None; the reader of the project reports the problem."""
        try:
            return self.read(path.resolve(strict=True))
        except (UsageError, OSError, RuntimeError):
            return None

    def lean_files(self, path: Path) -> list[Path]:
        """Return the Lean files below a resolved path, without build output and links."""
        if path.is_file():
            return [path]
        found: list[Path] = []
        for directory, names, files in os.walk(path):
            names[:] = sorted(name for name in names if name not in _SKIPPED)
            here = Path(directory)
            found += [
                here / name
                for name in files
                if name.endswith(".lean") and not (here / name).is_symlink()
            ]
            if len(found) > MAX_FILES:
                raise UsageError(f"more than {MAX_FILES:,} Lean files; name a directory below")
        return sorted(found)

    def resolve_target(self, root: Path, relative: str | Path) -> Path:
        """Return a path to write below a root; an error if its existing part leaves the root."""
        path = root / relative
        if not path.resolve().is_relative_to(root):
            raise UsageError(f"{relative} leads out of the root; choose a directory inside it")
        return path


def _opened(root: Path, parts: tuple[str, ...]) -> int:
    """Return a descriptor of the file, opened without following a link."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for depth, part in enumerate(parts):
        kind = os.O_DIRECTORY if depth < len(parts) - 1 else os.O_NONBLOCK
        try:
            inner = os.open(
                part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=descriptor
            )
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


_MAX_BYTES = 64 << 10


def require_confined(repository: Path, files: Confinement) -> None:
    """Raise `UsageError` if the repository keeps objects outside the roots."""
    git = repository / ".git"
    if not git.is_dir() and git.exists():  # a worktree: the file names the repository
        text = files.read(files.resolve(str(git)), _MAX_BYTES).strip()
        git = repository / text.removeprefix("gitdir:").strip()
    for directory in _object_directories(git):
        if files.root_of(directory.resolve()) is None:
            raise UsageError(
                "the repository keeps its objects outside the roots; start the server with "
                f"{directory} as a --root too"
            )


def environment(roots: Iterable[Path]) -> dict[str, str]:
    """Return variables with which git looks for no repository above a root."""
    return {"GIT_CEILING_DIRECTORIES": os.pathsep.join(str(root.parent) for root in roots)}


def _object_directories(git: Path) -> list[Path]:
    directories = [git, *_named(git / "commondir", git)]
    for base in list(directories):
        objects = base / "objects"
        directories += [objects, *_named(objects / "info" / "alternates", objects)]
    return directories


def _named(path: Path, base: Path) -> list[Path]:
    """Return the directories that the lines of a file name."""
    try:
        lines = path.read_bytes()[:_MAX_BYTES].decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [base / line.strip() for line in lines if line.strip() and not line.startswith("#")]
