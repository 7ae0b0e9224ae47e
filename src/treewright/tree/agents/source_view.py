"""What a role is shown of the repository, and how it is told to edit.

A command-line agent reads for itself. A chat model sees only its prompt, so it gets
the list of files, and as many of them as fit, those that the idea speaks of first.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from treewright.kernel import untrusted
from treewright.tree.agents import prompts
from treewright.tree.config import BackendConfig, OpenaiBackend
from treewright.tree.ideas.text import fence_for
from treewright.tree.repository.git import git

_IN_PLACE = "The repository is the current directory. Read whatever you need in it."
_LARGEST_FILE = 256 * 1024
_LIST_SHARE = 4
"""At most this part (one in four) of the room goes to the list of names."""


def repository_view(config: BackendConfig, worktree: Path, values: Mapping[str, str]) -> str:
    if not isinstance(config, OpenaiBackend):
        return _IN_PLACE
    about = "\n".join(values.get(name, "") for name in ("idea", "plan", "review"))
    return show_files(worktree, about, config.context_chars)


def how_to_edit(config: BackendConfig) -> str:
    name = "edit_in_reply" if isinstance(config, OpenaiBackend) else "edit_in_place"
    return prompts.builtin(name).strip()


def show_files(worktree: Path, about: str, room: int) -> str:
    """Names and contents of the worktree's files in at most `room` characters of them."""
    listed = git(worktree, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = sorted({name for name in listed.split("\0") if name and (worktree / name).is_file()})
    parts = [f"The repository has {len(names)} files:", _list(names, room // _LIST_SHARE)]
    left = room - len(parts[1])
    for name in sorted(names, key=lambda name: _rank(name, about, worktree)):
        text = _text(worktree / name)
        if text is not None and len(text) <= left:
            fence = fence_for(text)
            end = "" if text.endswith("\n") or not text else "\n"
            parts.append(f"{name}:\n{fence}\n{text}{end}{fence}")
            left -= len(text)
    return "\n\n".join(parts)


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
