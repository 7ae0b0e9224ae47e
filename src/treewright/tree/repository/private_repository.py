"""A private git repository for the commands that run in a worktree.

A worktree shares branches, tags, the stash and the configuration with the user's repository. While
an agent, the tests or the sweep of a candidate run, the worktree's `.git` therefore leads to a
private repository, which borrows the objects and has copies of the refs. Commands there can read
the whole history, commit, stash and branch, and the user's repository stays as it is.
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
from treewright.tree.repository import refs, worktree_records
from treewright.tree.repository.git import GitError

_NAME = "treewright-private"
_MODULES = "modules"
_RECORD = ("HEAD", "commondir", "gitdir")
_LARGEST_POINTER = 1 << 16
_CAUSED_BY_CANDIDATE = (PermissionError, FileExistsError, FileNotFoundError, NotADirectoryError)


@contextlib.contextmanager
def private_repository(worktree: Path) -> Iterator[Callable[[], bool]]:
    """Let git in `worktree` work on a private repository while the block runs.

    Yields a function that returns whether the worktree still leads to the private repository.

    Raises:
        GitError: A command in the block removed or replaced the worktree.
    """
    pointer = worktree / ".git"
    if not pointer.is_file():  # not a linked worktree: nothing is shared
        yield lambda: True
        return
    restore_pointer(worktree)
    before = pointer.read_bytes()
    identity = _identity(worktree)
    own, common = refs.git_directories(worktree)
    record = _read_record(own)
    private = _create(worktree)
    redirected = os.fsencode(f"gitdir: {private}\n")

    def give_back() -> bool:
        worktree_records.remove_pipes(common)
        if _identity(worktree) != identity:
            return False
        try:
            for directory in (worktree, private.parent):
                _unlock(directory)
            _write(pointer, before)
            for name, content in record.items():
                if not _reads(own / name, content):
                    _write(own / name, content)
            _clear(private)
        except _CAUSED_BY_CANDIDATE:
            return False
        return True

    try:
        _write(pointer, redirected)
        yield lambda: _reads(pointer, redirected)
    except LeaseLost:
        raise  # the worktree may belong to the next owner by now
    except BaseException:
        give_back()
        raise
    if not give_back():
        raise GitError(f"{worktree} was removed or replaced by what ran in it")


def restore_pointer(worktree: Path) -> None:
    """Restore the `.git` of a worktree that a killed search has left at a private repository."""
    pointer = worktree / ".git"
    with contextlib.suppress(OSError):
        text = untrusted.read(pointer, _LARGEST_POINTER).decode("utf-8", "surrogateescape")
        private = Path(text.removeprefix("gitdir: ").removesuffix("\n"))
        if private.name == _NAME:
            _write(pointer, os.fsencode(f"gitdir: {private.parent}\n"))


def remove_submodules(worktree: Path) -> None:
    """Remove the submodules that the private repositories of a worktree have kept."""
    own, _ = refs.git_directories(worktree)
    if os.path.lexists(own / _NAME):
        untrusted.remove_tree(own / _NAME)


def modules(own: Path) -> Path:
    """Return the directory of submodules fetched in the worktree with the git directory `own`."""
    return own / _NAME / _MODULES


def repositories(worktree: Path) -> list[Path]:
    """Return the private repository of a worktree and the repository whose objects it borrows.

    Returns an empty list if git does not work on a private repository there now.
    """
    if not (worktree / ".git").is_file():
        return []
    private, _ = refs.git_directories(worktree)
    return [private, refs.common_directory(private.parent)] if private.name == _NAME else []


def _create(worktree: Path) -> Path:
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


def _read_record(own: Path) -> dict[str, bytes]:
    """Return the files in git's record of a worktree that say which worktree and branch it is."""
    found: dict[str, bytes] = {}
    for name in _RECORD:
        with contextlib.suppress(OSError):
            found[name] = untrusted.read(own / name, _LARGEST_POINTER)
    return found


def _config(included: Path, sha256: bool) -> str:
    quoted = str(included.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    kind = "[extensions]\n\tobjectFormat = sha256\n" if sha256 else ""
    return (
        f"[core]\n\trepositoryFormatVersion = {int(sha256)}\n{kind}"
        f'[include]\n\tpath = "{quoted}"\n[core]\n\tbare = false\n'
    )


def _clear(private: Path) -> None:
    """Remove everything except the repositories of submodules.

    The checkouts of submodules in the worktree lead to them, and stay between agents.
    """
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


def _unlock(directory: Path) -> None:
    """Restore the owner's rights to a directory: a command may have removed them."""
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
