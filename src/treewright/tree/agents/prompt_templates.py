"""Prompts are files: `treewright/tree/prompts/*.md`, or the user's own.

`{{name}}` is replaced where the name is known; all other braces stay, so a prompt may
contain code, JSON and templates. Replaced text is not looked at again: an idea that
says `{{plan}}` stays an idea that says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from treewright.kernel.errors import UsageError

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")

CHARS_A_TOKEN = 4
"""How many characters of a prompt are counted as a token: about right for English and code."""
NO_TASK = "(The user has not described it.)"

NEEDED: dict[str, tuple[str, ...]] = {
    "planner": ("idea",),
    "coder": ("idea",),
    "reviewer": ("diff",),
    "ideas": ("count",),
}
"""What a prompt cannot do without: a coder who is not told the idea implements nothing."""


def substitute(template: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def mentions(template: str, name: str) -> bool:
    return "{{" + name + "}}" in template


def builtin(name: str) -> str:
    """A prompt that ships with treewright."""
    source = resources.files("treewright.tree") / "prompts" / f"{name}.md"
    return source.read_text(encoding="utf-8")


def load(purpose: str, replacement: str | None, repo: Path) -> str:
    """The user's prompt file (relative to the repository) or else the built-in one."""
    if replacement is None:
        return builtin(purpose)
    path = repo / replacement
    try:
        template = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"cannot read the {purpose} prompt {path}: {reason}") from error
    missing = [name for name in NEEDED[purpose] if not mentions(template, name)]
    if missing:
        raise UsageError(f"the {purpose} prompt {path} never uses {{{{{missing[0]}}}}}")
    return template
