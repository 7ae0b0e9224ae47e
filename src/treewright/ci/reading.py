"""The `sorry`s of a change as Lean finds them, before it and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.ci.changes import Change
from treewright.ci.comparison import compare, open_goals
from treewright.ci.findings import Attempt, Findings, Problem
from treewright.lean.hosts.host import Host
from treewright.lean.project.import_order import by_written_imports
from treewright.lean.project.project import Project
from treewright.lean.session.host_session import HostSession
from treewright.lean.sorries import FileSorries, extract_files


@dataclass(frozen=True, slots=True)
class Reader:
    """A Lean for the files of a change. `project_at` gives the modules around a directory; a
    toolchain has those that are built, for the base as well."""

    host: Host
    project_at: Callable[[Path], Project | None]
    timeout: float

    def read(self, change: Change) -> Findings:
        """Nothing is tried yet. Where the base cannot be read, all of a file counts as new."""
        here = change.directory.relative_to(change.repository)
        with change.at_base() as tree:
            before = list(self._files(tree, here, change.files))
        after = list(self._files(change.repository, here, change.files))
        new, gone = compare(
            [goal for name, found in before for goal in open_goals(found, name)],
            [goal for name, found in after for goal in open_goals(found, name)],
        )
        return Findings(
            change.base,
            change.files,
            tuple(Attempt(goal) for goal in new),
            tuple(gone),
            tuple(Problem(name, why) for name, found in after if (why := _trouble(found))),
            tuple(Problem(name, found.error) for name, found in before if found.error),
        )

    def _files(
        self, root: Path, here: Path, names: Sequence[str]
    ) -> Iterator[tuple[str, FileSorries]]:
        """Those that are there, each behind what it imports."""
        paths = [root / name for name in names if (root / name).is_file()]
        if not paths:
            return
        project = self.project_at(root / here)
        ordered = by_written_imports(root / here, paths)
        found = extract_files(
            lambda: HostSession(self.host, project=project), ordered, timeout=self.timeout
        )
        for one in found:
            yield one.path.relative_to(root).as_posix(), one


def _trouble(found: FileSorries) -> str:
    """Why there may be more in a file than was found."""
    errors = [each for each in found.diagnostics if each.severity == "error"]
    if found.error or not errors:
        return found.error
    return " ".join(errors[0].format(found.path.name).split())
