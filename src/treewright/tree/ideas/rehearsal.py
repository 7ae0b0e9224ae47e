"""The ideas of a dry run: nothing is asked, nothing is started, every machine has the same.

Sources that only read files propose what they would propose. In the place of those that
ask a model or run a program stand ideas that say so.
"""

from __future__ import annotations

from collections.abc import Iterable

from treewright.tree.config import CommandIdeas, IdeaSourceConfig, LlmIdeas
from treewright.tree.ideas.base import Idea, IdeaSource, NodeContext, Proposals
from treewright.tree.ideas.factory import make_source


def rehearsed_source(config: IdeaSourceConfig) -> IdeaSource:
    if isinstance(config, LlmIdeas):
        return _Rehearsed("llm")
    if isinstance(config, CommandIdeas):
        return _Rehearsed("command")
    return make_source(config)


class _Rehearsed:
    def __init__(self, kind: str) -> None:
        self._kind = kind

    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        """As many as are wanted; the node and the round make them different from others."""
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
