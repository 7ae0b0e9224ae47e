"""The files, directories and repositories that a client may name: those inside the roots."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.kernel.storage.run_directory import STATE_DIR
from treewright.mcp_server.answer_limits import LONGEST_TEXT

_SKIPPED = frozenset({".lake", ".git", STATE_DIR, "build", "node_modules"})
MOST_FILES = 20_000


class Confinement:
    """The roots, resolved once. Relative paths are those of the first one."""

    def __init__(self, roots: Sequence[Path]) -> None:
        for root in roots:
            if not root.is_dir():
                raise UsageError(f"there is no directory {root}; give one with --root")
        self.roots = tuple(dict.fromkeys(root.resolve() for root in roots))

    @property
    def first(self) -> Path:
        return self.roots[0]

    def resolve(self, given: str) -> Path:
        """The place that a path names; an error unless it is there and inside a root."""
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
        """The root that a resolved path is in."""
        return next((root for root in self.roots if path.is_relative_to(root)), None)

    def shown(self, path: Path) -> str:
        """A path as a client would name it."""
        return (
            path.relative_to(self.first).as_posix()
            if path.is_relative_to(self.first)
            else str(path)
        )

    def read(self, path: Path, largest: int = LONGEST_TEXT) -> str:
        """The text of a resolved path; an error unless it is a regular file of UTF-8."""
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
        """The same for a file of a project, whose reader says itself what is wrong."""
        try:
            return self.read(path.resolve(strict=True))
        except (UsageError, OSError, RuntimeError):
            return None

    def lean_files(self, path: Path) -> list[Path]:
        """The Lean files below a resolved path, build output left out; no link is followed."""
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
            if len(found) > MOST_FILES:
                raise UsageError(f"more than {MOST_FILES:,} Lean files; name a directory below")
        return sorted(found)

    def place_to_write(self, root: Path, relative: str | Path) -> Path:
        """A place below a root whose existing part is reached without leaving the root."""
        path = root / relative
        if not path.resolve().is_relative_to(root):
            raise UsageError(f"{relative} leads out of the root; nothing is written there")
        return path


def _opened(root: Path, parts: tuple[str, ...]) -> int:
    """A descriptor of what is there, without following a link on the way."""
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


_LONGEST = 64 << 10


def require_confined(repository: Path, files: Confinement) -> None:
    """Refuses one whose `.git`, common directory or alternates lead out of the roots."""
    git = repository / ".git"
    if not git.is_dir() and git.exists():  # a worktree: a file says where the repository is
        text = files.read(files.resolve(str(git)), _LONGEST).strip()
        git = repository / text.removeprefix("gitdir:").strip()
    for place in _places(git):
        if files.root_of(place.resolve()) is None:
            raise UsageError(
                "the repository keeps its objects outside the roots; start the server with "
                f"{place} as a --root too"
            )


def environment(roots: Iterable[Path]) -> dict[str, str]:
    """For git: it does not look for a repository above a root."""
    return {"GIT_CEILING_DIRECTORIES": os.pathsep.join(str(root.parent) for root in roots)}


def _places(git: Path) -> list[Path]:
    places = [git, *_named(git / "commondir", git)]
    for base in list(places):
        objects = base / "objects"
        places += [objects, *_named(objects / "info" / "alternates", objects)]
    return places


def _named(path: Path, base: Path) -> list[Path]:
    """The directories that the lines of a file name."""
    try:
        lines = path.read_bytes()[:_LONGEST].decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [base / line.strip() for line in lines if line.strip() and not line.startswith("#")]
