"""What a role is shown of the repository, and how it is told to edit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from treewright.tree.agents import prompts
from treewright.tree.config import BackendConfig

_IN_PLACE = "The repository is the current directory. Read whatever you need in it."


def repository_view(config: BackendConfig, worktree: Path, values: Mapping[str, str]) -> str:
    return _IN_PLACE


def how_to_edit(config: BackendConfig) -> str:
    return prompts.builtin("edit_in_place").strip()
