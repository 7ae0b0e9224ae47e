"""From an entry of `ideas` in the configuration to its source."""

from __future__ import annotations

from treewright.kernel.errors import UsageError
from treewright.tree.config import DirectoryIdeas, IdeaSourceConfig, MutateIdeas
from treewright.tree.ideas.base import IdeaSource
from treewright.tree.ideas.directory import DirectorySource
from treewright.tree.ideas.mutate import MutateSource


def make_source(config: IdeaSourceConfig) -> IdeaSource:
    match config:
        case DirectoryIdeas():
            return DirectorySource(config)
        case MutateIdeas():
            return MutateSource(config)
        case _:
            raise UsageError("this idea source is not available")
