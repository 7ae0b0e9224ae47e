"""The interface of an idea source, the description of a node for it, and the source `directory`.

A source proposes ideas in a stable order; the expander takes the first ones that are not
duplicates. A source never writes into the node's checkout or the records of the run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from treewright.kernel.errors import TreewrightError
from treewright.kernel.procs.cancellation import check
from treewright.kernel.storage import untrusted
from treewright.llm.usage import Usage
from treewright.tree.agents.prompts import View
from treewright.tree.config import DirectoryIdeas
from treewright.tree.guard.isolation import Isolation
from treewright.tree.ideas.search_history import Outcomes

MAX_ATTEMPTS = 3
"""After this many failed attempts for a node, the next source is asked."""


_REPAIR = "save it as UTF-8 or take it out of the directory"


class IdeaSourceError(TreewrightError):
    """A source cannot work until the user or the operator of an endpoint fixes a problem."""

    is_outage = True


class GeneratorFailure(IdeaSourceError):
    """A source gave no ideas for one node, for example because a model refused.

    Other sources, and the same source on other nodes, may still give ideas. `usage` is the usage of
    the failed attempts.
    """

    is_outage = False

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()


@dataclass(frozen=True, slots=True)
class Idea:
    """A proposed idea: the whole text of its Markdown file, and its origin for the record."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class NodeContext:
    """A node, and all that a source may use to propose ideas for it."""

    node_id: str
    depth: int
    """The depth of the node; 0 for the root."""
    wanted: int
    """The number of ideas to propose."""
    seed: int
    checkout: Path
    """A directory with the files of the node; read only."""
    repo: Path
    """The root of the target repository. Relative paths of the configuration start here."""
    context_ideas_dirs: list[Path]
    """Idea directories of the node and its ancestors, nearest first."""
    diff_stat: str
    """`git diff --stat` against the root commit."""
    last_summary: dict[str, Any] | None
    """The scoring summary of the node (deltas, reasons); None at the root."""
    scratch: Path
    """An empty directory for files and logs of the source."""
    protected_paths: list[str] = field(default_factory=list)
    editable_blocks: list[str] = field(default_factory=list)
    """Files with marked blocks. If there are any, only these blocks may change."""
    task: str = ""
    """The user's description of the task."""
    view: View = field(default_factory=View)
    """The files that a model may see."""
    owner: str = ""
    cancel: threading.Event | None = None
    outcomes: Outcomes | None = None
    """The outcomes of earlier evaluations."""
    isolation: Isolation | None = None
    round: int = 1
    """The depth that the ideas are for. In a policy search: the number of this
    expansion in the run."""


@dataclass(slots=True)
class Proposals:
    """Ideas in stable order, and the usage of producing them."""

    ideas: list[Idea] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


class IdeaSource(Protocol):
    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        """Propose ideas for a node.

        Args:
            context: The node.
            taken: Keys (`idea_text.key`) of ideas that would be skipped as duplicates.

        Raises:
            GeneratorFailure: the source has no ideas for this node.
            IdeaSourceError: the source cannot work at all.
        """
        ...


def stop_if_cancelled(context: NodeContext) -> None:
    """Raise KeyboardInterrupt after a cancellation, which is not a failure of the source."""
    if context.cancel is not None and context.cancel.is_set():
        check(context.cancel)  # a lost lease explains the cancellation better
        raise KeyboardInterrupt


class DirectorySource:
    """Proposes the same files at every node; the expander skips files that were tried."""

    def __init__(self, config: DirectoryIdeas) -> None:
        self._config = config

    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        return Proposals(read_ideas(context.repo / self._config.path, origin=self._config.path))


def read_ideas(directory: Path, *, origin: str, repair: str = _REPAIR) -> list[Idea]:
    """Return the ideas of the `.md` files in a directory, without empty files.

    Line endings are kept. Subdirectories are not searched.

    Args:
        directory: The directory.
        origin: The origin that the record gets, before the name of the file.
        repair: The advice in the error for a file that is not UTF-8.

    Raises:
        IdeaSourceError: the directory or a file cannot be read, or a file is not UTF-8.
    """
    try:
        paths = sorted(
            path for path in directory.iterdir() if path.suffix == ".md" and path.is_file()
        )
    except OSError as error:
        raise IdeaSourceError(
            f"cannot read the idea directory {directory}: {error.strerror}; "
            "check `path` of this idea source"
        ) from error
    ideas: list[Idea] = []
    for path in paths:
        name = os.fsencode(path.name).decode("utf-8", "backslashreplace")  # records are UTF-8
        try:
            # Read bytes, because reading text would turn CRLF in a patch into LF.
            # The user may use links, but the target must be a plain file.
            text = untrusted.read(path.resolve(), untrusted.LARGEST_TEXT).decode("utf-8")
        except UnicodeDecodeError as error:
            raise IdeaSourceError(
                f"{directory / name} is not UTF-8 text (byte {error.start}); {repair}, "
                "then run the same command again"
            ) from None
        except OSError as error:
            raise IdeaSourceError(
                f"cannot read {directory / name}: {error.strerror or error}"
            ) from error
        if text.strip():
            ideas.append(Idea(text, origin=f"{origin}/{name}"))
    return ideas
