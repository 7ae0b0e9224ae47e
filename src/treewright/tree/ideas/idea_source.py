"""The interface of an idea source, and what a source is told about the node.

A source proposes ideas in a stable order; the coordinator takes the first K that
are not duplicates. It never writes into the node's worktree or the run's state.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from treewright.kernel.errors import TreewrightError
from treewright.kernel.procs.cancellation import check
from treewright.llm.usage import Usage
from treewright.tree.agents.view import View
from treewright.tree.guard.isolation import Isolation
from treewright.tree.ideas.search_history import Outcomes

ATTEMPTS = 3
"""How often a generator is asked for a node's ideas before the next source is."""


class IdeaSourceError(TreewrightError):
    """A source cannot do its work until the user or an endpoint's owner has put something right."""

    is_outage = True


class GeneratorFailure(IdeaSourceError):
    """A generator gave no ideas for one node, such as a refusal; other sources and nodes may have
    some. `usage` is what its attempts cost."""

    is_outage = False

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()


@dataclass(frozen=True, slots=True)
class Idea:
    """`text` is the whole Markdown file; `origin` says where it came from."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What a source may look at when it thinks about a node."""

    node_id: str
    depth: int
    """The node's own: 0 for the root."""
    wanted: int
    seed: int
    checkout: Path
    """A directory with the node's files; read only."""
    repo: Path
    """The target repository's root, which relative paths of the configuration refer to."""
    context_ideas_dirs: list[Path]
    """Idea directories of the node and its ancestors, nearest first."""
    diff_stat: str
    """`git diff --stat` against the root commit."""
    last_summary: dict[str, Any] | None
    """The node's own scoring summary (deltas, reasons); None at the root."""
    scratch: Path
    """An empty directory for the source's own files and logs."""
    protected_paths: list[str] = field(default_factory=list)
    editable_blocks: list[str] = field(default_factory=list)
    """Files of which only the marked blocks may change; then nothing else may."""
    task: str = ""
    """What is to be improved, in the user's words."""
    view: View = field(default_factory=View)
    """Which files a model may see."""
    owner: str = ""
    cancel: threading.Event | None = None
    outcomes: Outcomes | None = None
    """What came of earlier tries; looked up by those who ask."""
    isolation: Isolation | None = None
    """For sources that ask for it."""
    round: int = 1
    """The depth that is being searched, for which the ideas are; without a barrier the number
    of this expansion in the run."""


@dataclass(slots=True)
class Proposals:
    """Ideas in stable order, and what producing them cost."""

    ideas: list[Idea] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


class IdeaSource(Protocol):
    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        """Proposes ideas; `taken` are keys (`text.key`) of ideas that would only be skipped."""
        ...


def stop_if_cancelled(context: NodeContext) -> None:
    """What failed because it was interrupted is no failure of the source."""
    if context.cancel is not None and context.cancel.is_set():
        check(context.cancel)  # a lost lease is the better reason
        raise KeyboardInterrupt
