"""A recorded search, read without its lease: what it found so far, and whether it is repeatable.

Nothing is written, so a search that another process runs can be read too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.errors import UsageError
from treewright.search import search_journal
from treewright.search.history import History
from treewright.search.search_journal import Chosen, Created, Line

_LONGEST_DATA = 200


@dataclass(frozen=True, slots=True)
class Description:
    """The state of a search.

    Attributes:
        can_be_repeated: Whether another search with these settings grows the same tree.
        deepest: The depth of the deepest node.
    """

    settings: dict[str, Any]
    budget: int | None
    evaluations: int
    failed: int
    under_way: int
    deepest: int
    best: dict[str, Any] | None
    can_be_repeated: bool

    def as_json(self) -> str:
        """Return the description as a JSON object."""
        return msgspec.json.encode(self).decode()

    def as_text(self) -> str:
        """Return the description for people."""
        settings = self.settings
        limit = "" if self.budget is None else f" of {self.budget}"
        order = (
            f"fixed order, lookahead {settings['lookahead']}"
            if self.can_be_repeated
            else "live order: it resumes and validates, but cannot be repeated"
        )
        lines = [
            f"policy       {settings['policy']}, seed {settings['seed']}, {order}",
            f"evaluations  {self.evaluations}{limit}, {self.failed} failed, "
            f"{self.under_way} without an outcome, deepest {self.deepest}",
        ]
        if self.best is not None:
            data = msgspec.json.encode(self.best["data"]).decode()
            shown = data if len(data) <= _LONGEST_DATA else data[:_LONGEST_DATA] + " ..."
            lines.append(
                f"best         {self.best['score']:g}, node {self.best['number']} at depth "
                f"{self.best['depth']}: {shown}"
            )
        return "\n".join(lines)


def describe(path: Path) -> Description:
    """Return the state of the search at `path`, from its journal alone."""
    search = History.of(search_journal.read(path))
    best = search.best
    return Description(
        settings=msgspec.to_builtins(search.settings),
        budget=search.budget,
        evaluations=search.evaluations,
        failed=len(search.failures),
        under_way=search.sequencer.under_way,
        deepest=max((node.depth for node in search.scored), default=0),
        best=None
        if best is None
        else {name: getattr(best, name) for name in ("number", "depth", "score", "data")},
        can_be_repeated=search.settings.order == "fixed",
    )


def validate(path: str | Path) -> list[str]:
    """Make every choice of a recorded search again and compare it with the recorded one.

    A choice is made from the outcomes that it knew when it was recorded. In fixed order the number
    of those outcomes is computed too. Nothing is written.

    Args:
        path: The directory of the search.

    Returns:
        The problems that were found; an empty list if there are none.

    Raises:
        UsageError: There is no search at `path`.

    Example:
        >>> import tempfile
        >>> from treewright.search.study import open_search
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with open_search(directory, policy="random", budget=5) as search:
        ...         _ = search.run(lambda task: 1.0)
        ...     validate(directory)
        []
    """
    lines = search_journal.read(Path(path))
    created = next(line for line in lines if isinstance(line, Created))
    history = History(created.settings)
    problems: list[str] = []
    for line in lines:
        if isinstance(line, Created) and line is not created:
            problems.append("the search was created twice")
            continue
        try:
            problem = _check(history, line)
        except (UsageError, ValueError) as error:
            problems.append(f"{search_journal.name_of(line)}: {error}")
            break
        if problem is not None:
            problems.append(f"{search_journal.name_of(line)}: {problem}")
            break
    return problems


def _check(history: History, line: Line) -> str | None:
    """Apply a line; make a choice by the policy and return how the recorded one differs."""
    if not isinstance(line, Chosen):
        history.apply(line)
        return None
    policy = history.settings.policy
    branch = history.sequencer.next()
    if branch is None:
        return f"the {policy} policy would have waited"
    assert branch.parent is not None
    made = (branch.number, branch.parent.number, branch.action, history.sequencer.seen)
    recorded = (line.number, line.parent, line.action, line.seen)
    if made != recorded:
        return (
            f"the {policy} policy chooses (number, parent, action, outcomes known) {made}, "
            f"recorded is {recorded}"
        )
    return None
