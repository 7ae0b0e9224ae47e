"""What a role is shown of the repository, and how it is told to edit.

A command-line agent reads for itself. A chat model sees only its prompt: the files that it may
change, and of the others as many as fit, those that the idea speaks of first. It does not see
protected files, because they hold what decides (an evaluator may hold the answers), unless the
user lists them in `readable_paths`.
"""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.storage import untrusted
from treewright.tree.agents import prompt_templates
from treewright.tree.agents.view import View
from treewright.tree.config import BackendConfig, OpenaiBackend
from treewright.tree.ideas.idea_text import fence_for
from treewright.tree.repository import blocks
from treewright.tree.repository.git import git

_IN_PLACE = "The repository is the current directory. Read whatever you need in it."
_LARGEST_FILE = 256 * 1024
_LIST_SHARE = 4
"""At most this part (one in four) of the room goes to the list of names."""
_NAMED = 5


class PromptTooLong(Exception):
    """What a prompt cannot do without is longer than its budget."""


def repository_view(
    config: BackendConfig, worktree: Path, about: str, room: int, view: View
) -> str:
    """`about` is the text whose file names come first, `room` the characters there are."""
    if not isinstance(config, OpenaiBackend):
        return _IN_PLACE
    return show_files(worktree, about, room, view)


def how_to_edit(config: BackendConfig) -> str:
    name = "edit_in_reply" if isinstance(config, OpenaiBackend) else "edit_in_place"
    return prompt_templates.builtin(name).strip()


def files(worktree: Path) -> list[str]:
    """The files of a worktree that git does not ignore."""
    listed = git(worktree, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted({name for name in listed.split("\0") if name and (worktree / name).is_file()})


def show_files(worktree: Path, about: str, room: int, view: View) -> str:
    """Names and contents of the files that the view admits, in at most `room` characters.

    Raises PromptTooLong if the editable blocks alone are longer.
    """
    everything = files(worktree)
    names = view.visible(everything)
    left_out = len(everything) - len(names)
    parts: list[str] = []
    if not view.editable_blocks:
        parts = [f"The repository has {len(names)} files:", _list(names, room // _LIST_SHARE)]
    if left_out and not view.editable_blocks:
        parts.append(f"({left_out} files are not shown: they are protected.)")
    left = room - sum(len(part) + 2 for part in parts)
    for name in view.editable_blocks:
        part = _block_view(worktree / name, name, left)
        parts.append(part)
        left -= len(part) + 2
    too_long: list[str] = []
    others = [name for name in names if name not in view.editable_blocks]
    for name in sorted(others, key=lambda name: _rank(name, about, worktree)):
        text = _text(worktree / name)
        if text is None:
            continue
        part = _shown(name, text)
        if len(part) + 2 <= left:
            parts.append(part)
            left -= len(part) + 2
        else:
            too_long.append(name)
    if too_long:
        more = f" and {len(too_long) - _NAMED} more" if len(too_long) > _NAMED else ""
        note = f"Too long to be shown: {', '.join(too_long[:_NAMED])}{more}."
        if len(note) + 2 <= left:
            parts.append(note)
    return "\n\n".join(parts)


def _block_view(path: Path, name: str, room: int) -> str:
    """The whole file, or its blocks where it is too long."""
    text = _text(path) or ""
    whole = _shown(name, text)
    if len(whole) + 2 <= room:
        return whole
    lines, inside, kept = text.splitlines(keepends=True), False, []
    for line in lines:
        inside = inside or blocks.START in line
        if inside:
            kept.append(line)
        inside = inside and blocks.END not in line
    part = _shown(f"{name} (only its editable blocks)", "".join(kept))
    if len(part) + 2 > room:
        raise PromptTooLong(f"the editable blocks of {name} have {len(part)} characters")
    return part


def _shown(name: str, text: str) -> str:
    fence = fence_for(text)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{name}:\n{fence}\n{text}{end}{fence}"


def _list(names: list[str], room: int) -> str:
    shown: list[str] = []
    for name in names:
        room -= len(name) + 1
        if room < 0:
            return "\n".join([*shown, f"(and {len(names) - len(shown)} more)"])
        shown.append(name)
    return "\n".join(shown)


def _rank(name: str, about: str, worktree: Path) -> tuple[int, int, str]:
    """Files named with their path, then those whose name occurs, then the small ones."""
    mentioned = 0 if name in about else 1 if Path(name).name in about else 2
    return mentioned, (worktree / name).lstat().st_size, name


def _text(path: Path) -> str | None:
    """None for what is not text, too large, or not a file of the worktree itself."""
    try:
        text = untrusted.read(path, _LARGEST_FILE).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text
