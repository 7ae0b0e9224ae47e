"""Validation of a recorded search: every choice is made again and compared with the record."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.search import records, storage
from treewright.search.history import History


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
    lines = storage.read(Path(path))
    created = next(line for line in lines if isinstance(line, records.Created))
    history = History(created.settings)
    problems: list[str] = []
    for line in lines:
        if isinstance(line, records.Created) and line is not created:
            problems.append("the search was created twice")
            continue
        try:
            problem = _check(history, line)
        except (UsageError, ValueError) as error:
            problems.append(f"{records.name_of(line)}: {error}")
            break
        if problem is not None:
            problems.append(f"{records.name_of(line)}: {problem}")
            break
    return problems


def _check(history: History, line: records.Line) -> str | None:
    """Apply a line; make a choice by the policy and return how the recorded one differs."""
    if not isinstance(line, records.Chosen):
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
