"""Idea sources from the configuration, and checks of whether a source can work."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.llm import keys
from treewright.llm.endpoint import check_installed, describe
from treewright.tree.agents import prompts
from treewright.tree.config import (
    CommandIdeas,
    DirectoryIdeas,
    IdeaSourceConfig,
    LlmIdeas,
    MutateIdeas,
)
from treewright.tree.ideas.command_source import CommandSource
from treewright.tree.ideas.idea_source import (
    DirectorySource,
    Idea,
    IdeaSource,
    NodeContext,
    Proposals,
    read_ideas,
)
from treewright.tree.ideas.mutate_source import MutateSource, count_places


def make_source(config: IdeaSourceConfig) -> IdeaSource:
    """Return the source of an entry of `ideas` in the configuration."""
    match config:
        case DirectoryIdeas():
            return DirectorySource(config)
        case CommandIdeas():
            return CommandSource(config)
        case LlmIdeas():
            check_installed()
            from treewright.tree.ideas.llm_source import LlmSource  # importing asyncio is slow

            return LlmSource(config)
        case MutateIdeas():
            return MutateSource(config)


def probe_source(
    config: IdeaSourceConfig, repo: Path, editable_blocks: Sequence[str] = ()
) -> tuple[bool, str]:
    """Return whether a source can propose ideas here, and a line with the reason for the user.

    No program runs and no request is sent.
    """
    try:
        return _probe(config, repo, editable_blocks)
    except TreewrightError as error:
        return False, str(error)


def _probe(
    config: IdeaSourceConfig, repo: Path, editable_blocks: Sequence[str]
) -> tuple[bool, str]:
    match config:
        case DirectoryIdeas():
            count = len(read_ideas(repo / config.path, origin=config.path))
            return count > 0, f"{count} idea files in {config.path}"
        case CommandIdeas():
            return _probe_command(config.command, repo)
        case LlmIdeas():
            check_installed()
            prompts.load_template("ideas", config.prompt, repo)
            return True, f"asks {describe(config.endpoint)} {keys.describe_key(config.endpoint)}"
        case MutateIdeas():
            files, places = count_places(config, repo, editable_blocks)
            return places > 0, f"{places} places to edit in {files} tunable files"


def _probe_command(command: str, repo: Path) -> tuple[bool, str]:
    """Check only the first word of the command, because the shell interprets the rest."""
    try:
        words = shlex.split(command)
    except ValueError:
        return True, "runs a shell command"
    name = words[0] if words else ""
    found = shutil.which(str(repo / name) if "/" in name else name)
    if found is None and "=" not in name:
        return False, f"the idea generator `{name}` is not on PATH; check `command`"
    return True, f"runs {found or name}"


def make_rehearsal_source(config: IdeaSourceConfig) -> IdeaSource:
    """Return the source for a dry run: no model and no command is asked for ideas."""
    if isinstance(config, LlmIdeas):
        return _SimulatedSource("llm")
    if isinstance(config, CommandIdeas):
        return _SimulatedSource("command")
    return make_source(config)


class _SimulatedSource:
    """Proposes placeholders for the ideas of a model or a command."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        where = f"node {context.node_id}, round {context.round}"
        return Proposals(
            [
                Idea(
                    f"# Simulated idea {number} ({where})\n\nStands for one of the idea source "
                    f"`{self._kind}`, which a dry run does not ask.\n",
                    origin=f"{self._kind}:dry-run",
                )
                for number in range(1, context.wanted + 1)
            ]
        )
