"""A repository of its own for whatever runs in a worktree, for as long as it runs.

Worktrees share branches, tags, the stash and the configuration with the user's
repository. So while a command-line agent, the tests or the sweep of a candidate run, the
worktree's `.git` leads to a private repository that borrows the objects and has copies of
the refs. Whoever works there can look at the whole history, commit, stash and branch as
it likes; none of it is anybody else's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from treewright.kernel.errors import LeaseLost
from treewright.kernel.storage import untrusted
from treewright.tree.repository import refs
from treewright.tree.repository.git import GitError

_NAME = "treewright-private"
_MODULES = "modules"
_LARGEST_POINTER = 1 << 16
_OF_WHAT_RAN = (PermissionError, FileExistsError, FileNotFoundError, NotADirectoryError)


@contextlib.contextmanager
def private_repository(worktree: Path) -> Iterator[Callable[[], bool]]:
    """While the block runs, git in `worktree` works on a private repository; the files are
    the same. Yields a question: does git still work on it?"""
    pointer = worktree / ".git"
    if not pointer.is_file():  # a repository of its own already
        yield lambda: True
        return
    take_back(worktree)
    before = pointer.read_bytes()
    place = _identity(worktree)
    private = _create(worktree)
    led_here = os.fsencode(f"gitdir: {private}\n")

    def give_back() -> bool:
        if _identity(worktree) != place:
            return False
        try:
            for directory in (worktree, private.parent):
                _allow(directory)
            _write(pointer, before)
            _clear(private)
        except _OF_WHAT_RAN:
            return False
        return True

    try:
        _write(pointer, led_here)
        yield lambda: _reads(pointer, led_here)
    except LeaseLost:
        raise  # what is at this path now may be the next owner's
    except BaseException:
        give_back()
        raise
    if not give_back():
        raise GitError(f"{worktree} was removed or replaced by what ran in it")


def take_back(worktree: Path) -> None:
    """Puts back the `.git` that a killed search left leading to a private repository."""
    pointer = worktree / ".git"
    with contextlib.suppress(OSError):
        text = untrusted.read(pointer, _LARGEST_POINTER).decode("utf-8", "surrogateescape")
        private = Path(text.removeprefix("gitdir: ").removesuffix("\n"))
        if private.name == _NAME:
            _write(pointer, os.fsencode(f"gitdir: {private.parent}\n"))


def forget(worktree: Path) -> None:
    """Removes what private repositories of the worktree have left for the next: submodules."""
    own, _ = refs.git_directories(worktree)
    if os.path.lexists(own / _NAME):
        untrusted.remove_tree(own / _NAME)


def modules(own: Path) -> Path:
    """Where the repositories of submodules are that were fetched in the worktree whose own
    directory that is."""
    return own / _NAME / _MODULES


def places(worktree: Path) -> list[Path]:
    """The private repository that git works on in the worktree now, and the one whose objects
    it borrows; nothing if there is none."""
    if not (worktree / ".git").is_file():
        return []
    private, _ = refs.git_directories(worktree)
    return [private, refs.common_directory(private.parent)] if private.name == _NAME else []


def _create(worktree: Path) -> Path:
    """By hand, because a process for each step would cost more than a quick test does."""
    own, common = refs.git_directories(worktree)
    found = refs.read_refs(worktree)
    lines = [f"{commit} {name}\n" for name, commit in found.named.items()]
    private = own / _NAME
    _clear(private)
    for name in ("objects/info", "refs/heads", "info"):
        (private / name).mkdir(parents=True)
    head = found.head.commit if found.head.branch is None else f"ref: {found.head.branch}"
    (private / "HEAD").write_bytes(os.fsencode(f"{head}\n"))
    (private / "packed-refs").write_bytes(os.fsencode("".join(lines)))
    objects = os.fsencode(f"{(common / 'objects').resolve()}\n")
    (private / "objects" / "info" / "alternates").write_bytes(objects)
    (private / "config").write_bytes(os.fsencode(_config(common / "config", found.is_sha256)))
    for name in ("shallow", "info/exclude"):
        if (common / name).is_file():
            shutil.copyfile(common / name, private / name)
    if (own / "index").is_file():
        shutil.copy2(own / "index", private / "index")
    return private


def _config(included: Path, sha256: bool) -> str:
    quoted = str(included.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    kind = "[extensions]\n\tobjectFormat = sha256\n" if sha256 else ""
    return (
        f"[core]\n\trepositoryFormatVersion = {int(sha256)}\n{kind}"
        f'[include]\n\tpath = "{quoted}"\n[core]\n\tbare = false\n'
    )


def _clear(private: Path) -> None:
    """Removes all but the repositories of submodules: their checkouts in the worktree lead
    here, and stay from one agent's turn to the next."""
    if (private / _MODULES).is_dir():
        for entry in private.iterdir():
            if entry.name != _MODULES:
                untrusted.remove_tree(entry)
    else:
        untrusted.remove_small_tree(private)


def _identity(directory: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = directory.lstat()
        if stat.S_ISDIR(found.st_mode):
            return found.st_dev, found.st_ino
    return None


def _allow(directory: Path) -> None:
    """What ran may have taken the right to write there from itself, and so from us."""
    mode = stat.S_IMODE(directory.lstat().st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        directory.chmod(mode | stat.S_IRWXU)


def _write(pointer: Path, content: bytes) -> None:
    with untrusted.create(pointer) as file:
        file.write(content)


def _reads(pointer: Path, content: bytes) -> bool:
    with contextlib.suppress(OSError):
        return untrusted.read(pointer, _LARGEST_POINTER) == content
    return False
