"""Prompts: their templates, and the files of the repository that models may see and change.

Templates are the files `treewright/tree/prompts/*.md`, or files of the user. `{{name}}` is replaced
if the name is known. All other braces stay, so a prompt may contain code, JSON and templates.
Inserted text is not searched for placeholders: `{{plan}}` in an idea stays.

A command-line agent reads files by itself. A chat model sees its prompt only: first the files that
the idea mentions, then others while they fit. Protected files decide the result (an evaluator may
contain the answers), so a model sees them only if the user lists them in `readable_paths`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.kernel.storage import untrusted
from treewright.tree.config import Config, DirectoryIdeas
from treewright.tree.guard.protected_files import match_protected
from treewright.tree.ideas.idea_text import fence_for
from treewright.tree.repository import blocks
from treewright.tree.repository.git import git

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")

CHARS_A_TOKEN = 4
"""Characters per token, an estimate for English and code."""
NO_TASK = "(The user has not described the task.)"

REQUIRED: dict[str, tuple[str, ...]] = {
    "planner": ("idea",),
    "coder": ("idea",),
    "reviewer": ("diff",),
    "ideas": ("count",),
}
"""Placeholders that the prompt for each purpose must contain."""


_LARGEST_FILE = 256 * 1024
_NAME_LIST_DIVISOR = 4
"""The list of file names takes at most a quarter of the room."""
_MAX_NAMED_FILES = 5


def substitute(template: str, values: Mapping[str, str]) -> str:
    """Return the template with known placeholders replaced."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def mentions(template: str, name: str) -> bool:
    """Return whether the template contains a placeholder."""
    return "{{" + name + "}}" in template


def load_builtin(name: str) -> str:
    """Return a prompt that ships with Treewright."""
    source = resources.files("treewright.tree") / "prompts" / f"{name}.md"
    return source.read_text(encoding="utf-8")


def load_template(purpose: str, replacement: str | None, repo: Path) -> str:
    """Return the template for a purpose.

    Args:
        purpose: A role, or `ideas`.
        replacement: The user's prompt file, relative to `repo`; None for the built-in prompt.
        repo: The root of the repository.

    Raises:
        UsageError: the file cannot be read, or a required placeholder is missing.
    """
    if replacement is None:
        return load_builtin(purpose)
    path = repo / replacement
    try:
        template = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"cannot read the {purpose} prompt {path}: {reason}") from error
    missing = [name for name in REQUIRED[purpose] if not mentions(template, name)]
    if missing:
        raise UsageError(f"the {purpose} prompt {path} never uses {{{{{missing[0]}}}}}")
    return template


class PromptTooLong(Exception):
    """The indispensable part of a prompt is longer than the prompt's budget."""


@dataclass(frozen=True, slots=True)
class View:
    """The files that models may see and change.

    Without editable blocks, models see every file that is not protected, and the readable ones.
    With editable blocks they see the files that contain these blocks, and the readable ones.
    """

    protected: Sequence[str] = ()
    readable: Sequence[str] = ()
    editable_blocks: Sequence[str] = ()

    @classmethod
    def of(cls, config: Config, protected: Sequence[str] = ()) -> View:
        """Return the view of a configuration.

        Scripts in the commands of the sweep and the tests count as protected, and so do the
        baseline and the directories of ideas.

        Args:
            config: The configuration of the run.
            protected: Protected paths in addition to the configured ones.
        """
        commands = [config.sweep.command, config.tests.command if config.tests else ""]
        scripts = [word for command in commands for word in re.split(r"[\s;&|'\"]+", command)]
        ideas = [each.path for each in config.ideas if isinstance(each, DirectoryIdeas)]
        hidden = [*config.protected_paths, *protected, config.baseline_csv, *ideas]
        hidden += filter(None, scripts)
        return cls(hidden, config.readable_paths, config.editable_blocks)

    def visible(self, names: Sequence[str]) -> list[str]:
        """Return the files that a model may see."""
        readable = {*match_protected(names, self.readable), *self.editable_blocks}
        if self.editable_blocks:
            return [name for name in names if name in readable]
        hidden = {*match_protected(names, self.protected)} - readable
        return [name for name in names if name not in hidden]

    def editable(self, names: Sequence[str]) -> list[str]:
        """Return the files that a change may touch."""
        if self.editable_blocks:
            return [name for name in names if name in self.editable_blocks]
        hidden = {*match_protected(names, self.protected)}
        return [name for name in names if name not in hidden]


def list_files(worktree: Path) -> list[str]:
    """Return the files of a worktree that git does not ignore."""
    listed = git(worktree, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted({name for name in listed.split("\0") if name and (worktree / name).is_file()})


def show_files(worktree: Path, about: str, room: int, view: View) -> str:
    """Return names and contents of the visible files, in at most `room` characters.

    Raises:
        PromptTooLong: the editable blocks alone are longer.
    """
    everything = list_files(worktree)
    names = view.visible(everything)
    parts: list[str] = []
    if not view.editable_blocks:
        listed = _name_list(names, room // _NAME_LIST_DIVISOR)
        parts = [f"The repository has {len(names)} files:", listed]
        if left_out := len(everything) - len(names):
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
        part = _fenced_file(name, text)
        if len(part) + 2 <= left:
            parts.append(part)
            left -= len(part) + 2
        else:
            too_long.append(name)
    if too_long:
        rest = len(too_long) - _MAX_NAMED_FILES
        more = f" and {rest} more" if rest > 0 else ""
        note = f"Too long to be shown: {', '.join(too_long[:_MAX_NAMED_FILES])}{more}."
        if len(note) + 2 <= left:
            parts.append(note)
    return "\n\n".join(parts)


def _block_view(path: Path, name: str, room: int) -> str:
    """Return the whole file, or only its editable blocks if it is too long."""
    text = _text(path) or ""
    whole = _fenced_file(name, text)
    if len(whole) + 2 <= room:
        return whole
    lines, inside, kept = text.splitlines(keepends=True), False, []
    for line in lines:
        inside = inside or blocks.START in line
        if inside:
            kept.append(line)
        inside = inside and blocks.END not in line
    part = _fenced_file(f"{name} (only its editable blocks)", "".join(kept))
    if len(part) + 2 > room:
        raise PromptTooLong(f"the editable blocks of {name} have {len(part)} characters")
    return part


def _fenced_file(name: str, text: str) -> str:
    fence = fence_for(text)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{name}:\n{fence}\n{text}{end}{fence}"


def _name_list(names: list[str], room: int) -> str:
    shown: list[str] = []
    for name in names:
        room -= len(name) + 1
        if room < 0:
            return "\n".join([*shown, f"(and {len(names) - len(shown)} more)"])
        shown.append(name)
    return "\n".join(shown)


def _rank(name: str, about: str, worktree: Path) -> tuple[int, int, str]:
    """Return a sort key: first files mentioned by path, then by name, then small files."""
    mentioned = 0 if name in about else 1 if Path(name).name in about else 2
    return mentioned, (worktree / name).lstat().st_size, name


def _text(path: Path) -> str | None:
    """Return the text of a file; None if it is not plain text, too large, or a link."""
    try:
        text = untrusted.read(path, _LARGEST_FILE).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text
