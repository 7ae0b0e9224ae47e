"""File edits and patches confined to a worktree: all of them are applied, or none.

Markdown editors and chat models write LF. A patch with LF never matches a file with CRLF, so
`apply_patch` gives each hunk the line ending of its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treewright.kernel.storage import untrusted
from treewright.tree.agents.backend import AgentFailure
from treewright.tree.repository.git import try_git

_HUNK_LINE = ("+", "-", " ")


@dataclass(frozen=True, slots=True)
class FileEdit:
    """The whole new text of a file; None deletes the file."""

    path: str
    text: str | None


def confine(path: str, worktree: Path) -> Path:
    """Return the file of the worktree that `path` names.

    Raises:
        AgentFailure: the path leads out of the worktree, into `.git` or through a link.
    """
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
    """Write every edit. If one cannot be written, undo the others.

    Raises:
        AgentFailure: an edit is not confined to the worktree, or cannot be written.
    """
    targets = [(confine(edit.path, worktree), edit) for edit in edits]
    before: list[tuple[Path, bytes | None]] = []
    made: list[Path] = []
    try:
        for target, edit in targets:
            before.append((target, _bytes_of(target)))
            if edit.text is None:
                target.unlink(missing_ok=True)
                continue
            missing = [parent for parent in target.parents if not parent.exists()]
            for directory in reversed(missing):
                directory.mkdir()
                made.append(directory)
            target.write_bytes(edit.text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        for target, data in reversed(before):
            if data is not None:
                target.write_bytes(data)
            elif target.is_file():
                target.unlink()
        for directory in reversed(made):
            directory.rmdir()
        problem = f"{error.filename}: {error.strerror}" if error.strerror else str(error)
        raise AgentFailure("edits_failed", f"cannot write {problem}") from error


def _bytes_of(target: Path) -> bytes | None:
    try:
        return untrusted.read(target, untrusted.LARGEST_TEXT)
    except FileNotFoundError:
        return None


def apply_patch(patch: str, worktree: Path) -> str:
    """Apply a unified diff with git, or change nothing.

    Authors of patches miscount the lines of a hunk. Git can count them, so a patch is refused only
    if its lines do not match the files. Git also needs an option for hunks without context lines.

    Returns:
        A note in parentheses about the repair of the patch; empty if no repair was necessary.

    Raises:
        AgentFailure: the patch does not apply.
    """
    patch = _adapt_line_endings(patch, worktree)
    refused = _git_apply(patch, worktree)
    if refused is None:
        return ""
    if _git_apply(patch, worktree, "--recount") is None:
        return " (with its hunk lengths counted again)"
    if _has_no_context(patch):
        if _git_apply(patch, worktree, "--unidiff-zero") is None:
            return " (it has no context lines: placed by its line numbers)"
        if _git_apply(patch, worktree, "--unidiff-zero", "--recount") is None:
            return " (it has no context lines: placed by its line numbers, lengths counted again)"
    raise AgentFailure("patch_failed", f"the patch does not apply: {refused}")


def _has_no_context(patch: str) -> bool:
    """Return whether every hunk consists of added and removed lines only."""
    in_hunk = found = False
    for line in patch.rstrip("\r\n").split("\n"):
        if line.startswith("@@"):
            in_hunk = found = True
        elif line.startswith("diff "):
            in_hunk = False
        elif in_hunk and not line.startswith(("+", "-", "\\")):
            return False
    return found


def _git_apply(patch: str, worktree: Path, *options: str) -> str | None:
    """Return None if git applied the patch, else git's reason."""
    done = try_git(worktree, "apply", "--whitespace=nowarn", *options, "-", stdin=patch)
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines()
    return said[0].removeprefix("error: ") if said else f"git apply exited with {done.returncode}"


def uses_crlf(data: bytes) -> bool:
    """Return whether a file has lines and every line ends in CRLF."""
    lines = data.count(b"\n")
    return lines > 0 and lines == data.count(b"\r\n")


def _adapt_line_endings(patch: str, worktree: Path) -> str:
    """Return the patch with CRLF in the hunks of CRLF files, unless it contains CR already."""
    if "\r" in patch:
        return patch
    crlf = in_hunk = False
    lines = patch.split("\n")
    for index, line in enumerate(lines[:-1]):
        # A removed line can look like a header ("--- x"), but no "+++ " follows it.
        if line.startswith("--- ") and lines[index + 1].startswith("+++ "):
            crlf, in_hunk = _is_crlf(worktree, line[4:]), False
        elif line.startswith("@@"):
            in_hunk = True
        elif line.startswith("diff "):
            in_hunk = False
        elif in_hunk and crlf and (line.startswith(_HUNK_LINE) or not line):
            lines[index] = line + "\r"
    return "\n".join(lines)


def _is_crlf(worktree: Path, header: str) -> bool:
    name = header.split("\t")[0]
    path = worktree / name.removeprefix("a/")
    try:
        inside = path.resolve().is_relative_to(worktree.resolve())
        return inside and uses_crlf(untrusted.read(path, untrusted.LARGEST_TEXT))
    except OSError:
        return False
