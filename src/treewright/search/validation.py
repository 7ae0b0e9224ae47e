"""Does a recorded search say what its policy would have chosen?

Every choice is made again from what it knew and compared with the recorded one; in `fixed` order
what it knew is computed too. Returns what is wrong, in words; nothing is written.
"""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.search import records, storage
from treewright.search.history import History


def validate(path: str | Path) -> list[str]:
    """Empty if everything holds. Raises UsageError where there is no search."""
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
    """Makes a recorded choice itself, by the policy; takes every other line as it is."""
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
