"""Does a recorded search say what its policy would have chosen?

Every choice is made again from what it knew and compared with the recorded one; in `fixed` order
what it knew is computed too. Returns what is wrong, in words; nothing is written.
"""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.search import records, storage
from treewright.search.study import Search


def validate(path: str | Path) -> list[str]:
    """Empty if everything holds. Raises UsageError where there is no search."""
    lines = storage.read(Path(path))
    created = next(line for line in lines if isinstance(line, records.Created))
    search = _Checked(created.settings, None, budget=None, is_begun=True, lookahead_given=True)
    problems: list[str] = []
    for line in lines:
        if isinstance(line, records.Created) and line is not created:
            problems.append("the search was created twice")
            continue
        try:
            problem = search.check(line)
        except (UsageError, ValueError) as error:
            problems.append(f"{records.name_of(line)}: {error}")
            break
        if problem is not None:
            problems.append(f"{records.name_of(line)}: {problem}")
            break
    return problems


class _Checked(Search):
    """A search in memory that makes each recorded choice itself before it takes it."""

    def check(self, line: records.Line) -> str | None:
        if not isinstance(line, records.Chosen):
            self._replay(line)
            return None
        branch = self._sequencer.next()
        if branch is None:
            return f"the {self.settings.policy} policy would have waited"
        assert branch.parent is not None
        made = (branch.number, branch.parent.number, branch.action, self._sequencer.seen)
        recorded = (line.number, line.parent, line.action, line.seen)
        if made != recorded:
            return (
                f"the {self.settings.policy} policy chooses (number, parent, action, outcomes "
                f"known) {made}, recorded is {recorded}"
            )
        return None
