"""File edits confined to a worktree: all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treewright.kernel.storage import untrusted
from treewright.tree.agents.backend import AgentFailure


@dataclass(frozen=True, slots=True)
class FileEdit:
    """The whole new text of a file; None deletes it."""

    path: str
    text: str | None


def confine(path: str, worktree: Path) -> Path:
    """The file that `path` names, or a failure if that is not a file of the worktree."""
    pure = PurePosixPath(path)
    parts = pure.parts
    if (
        not parts
        or pure.is_absolute()
        or ".." in parts
        or "\0" in path
        or any(part.rstrip(". ").lower() == ".git" for part in parts)
    ):
        raise AgentFailure(
            "edit_outside_worktree", f"an edit names {path!r}: not a file of the worktree"
        )
    target = worktree.joinpath(*parts)
    for step in [target, *target.parents]:
        if step == worktree:
            break
        if step.is_symlink():
            raise AgentFailure(
                "edit_outside_worktree", f"an edit of {path!r} would go through a symbolic link"
            )
    return target


def write_all(edits: Sequence[FileEdit], worktree: Path) -> None:
    """Writes every edit; if one cannot be written, the others are taken back."""
    targets = [(confine(edit.path, worktree), edit) for edit in edits]
    before: list[tuple[Path, bytes | None]] = []
    made: list[Path] = []
    try:
        for target, edit in targets:
            before.append((target, _bytes_of(target)))
            if edit.text is None:
                target.unlink(missing_ok=True)
                continue
            _make_parents(target, made)
            target.write_bytes(edit.text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        for target, data in reversed(before):
            if data is not None:
                target.write_bytes(data)
            elif target.is_file():
                target.unlink()
        for directory in reversed(made):
            directory.rmdir()
        what = f"{error.filename}: {error.strerror}" if error.strerror else str(error)
        raise AgentFailure("edits_failed", f"cannot write {what}") from error


def _bytes_of(target: Path) -> bytes | None:
    try:
        return untrusted.read(target, untrusted.LARGEST_TEXT)
    except FileNotFoundError:
        return None


def _make_parents(target: Path, made: list[Path]) -> None:
    """Creates missing directories, noting each at once so that it can be taken back."""
    missing = [parent for parent in target.parents if not parent.exists()]
    for directory in reversed(missing):
        directory.mkdir()
        made.append(directory)
