"""Prompt templates: the files `treewright/tree/prompts/*.md`, or files of the user.

`{{name}}` is replaced if the name is known. All other braces stay, so a prompt may contain code,
JSON and templates. Inserted text is not searched for placeholders: `{{plan}}` in an idea stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from treewright.kernel.errors import UsageError

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


def load(purpose: str, replacement: str | None, repo: Path) -> str:
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
