"""The Lean files that a change touches, and their `sorry`s before and after it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.ci.findings import Attempt, Findings, Problem, compare, open_goals
from treewright.kernel.errors import UsageError
from treewright.lean.hosts.host import Host
from treewright.lean.processes import LeanProcesses
from treewright.lean.project.project import Project
from treewright.lean.project.workspace import by_written_imports, find_root
from treewright.lean.sorries import FileSorries, extract_files
from treewright.tree.repository.git import git, top_of, try_git

_LAKE = ".lake"


@dataclass(frozen=True, slots=True)
class Change:
    """The Lean files below `directory` that differ from the commit `base`.

    The names in `files` are relative to `repository`.
    """

    repository: Path
    directory: Path
    base: str
    files: tuple[str, ...]

    @contextlib.contextmanager
    def at_base(self) -> Iterator[Path]:
        """Yield a copy of the repository at the base, with the current Lake packages."""
        with tempfile.TemporaryDirectory(prefix="treewright-base-") as scratch:
            tree = Path(scratch).resolve() / "tree"
            tree.mkdir()
            index = {"GIT_INDEX_FILE": str(tree.parent / "index")}
            git(self.repository, "read-tree", self.base, env=index)
            git(self.repository, "checkout-index", "--all", f"--prefix={tree}/", env=index)
            root = find_root(self.directory)
            if root is not None and root.is_relative_to(self.repository):
                there = tree / root.relative_to(self.repository)
                if (root / _LAKE).is_dir() and there.is_dir() and not (there / _LAKE).exists():
                    (there / _LAKE).symlink_to(root / _LAKE, target_is_directory=True)
            yield tree


def changed_since(directory: Path, base: str) -> Change:
    """Return the changed Lean files since the merge base of `base` and HEAD.

    In a shallow clone without a merge base, the files are compared with `base` itself.
    """
    if not directory.is_dir():
        raise UsageError(f"there is no directory {directory}")
    repository, here = top_of(directory).resolve(), directory.resolve()
    found = None
    if not base.startswith("-"):
        found = try_git(repository, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
    if found is None or found.returncode != 0:
        raise UsageError(f"there is no commit {base!r} in {repository}; fetch it, or name another")
    commit = found.stdout.strip()
    common = try_git(repository, "merge-base", commit, "HEAD")
    start = common.stdout.strip() if common.returncode == 0 else commit
    names = git(repository, "diff", "--name-only", "--no-renames", "-z", start, "--").split("\0")
    files = tuple(
        name
        for name in names
        if (repository / name).suffix == ".lean"
        and (repository / name).name != "lakefile.lean"  # it has no theorems
        and (repository / name).is_relative_to(here)
    )
    for name in files:
        if not name.isprintable():
            raise UsageError(f"the name of {name!r} cannot be printed; rename the file")
    return Change(repository, here, start, files)


@dataclass(frozen=True, slots=True)
class SorryReader:
    """Reads the sorries of a change with Lean.

    `project_at` returns the project around a directory for the bundled Lean. A toolchain uses the
    compiled modules of the checkout for the base too.
    """

    host: Host
    project_at: Callable[[Path], Project | None]
    timeout: float

    def read(self, change: Change) -> Findings:
        """Return the findings, before any proof is tried.

        If a file cannot be read at the base, all its sorries count as new.
        """
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
            tuple(Problem(name, why) for name, found in after if (why := _find_problem(found))),
            tuple(Problem(name, found.error) for name, found in before if found.error),
        )

    def _files(
        self, root: Path, here: Path, names: Sequence[str]
    ) -> Iterator[tuple[str, FileSorries]]:
        """Yield the existing files with their sorries, each after the files that it imports."""
        paths = [root / name for name in names if (root / name).is_file()]
        if not paths:
            return
        project = self.project_at(root / here)
        ordered = by_written_imports(root / here, paths)
        with LeanProcesses(self.host, project) as lean:
            for one in extract_files(lean.new_session, ordered, timeout=self.timeout):
                yield one.path.relative_to(root).as_posix(), one


def _find_problem(found: FileSorries) -> str:
    """Return why a file may have more sorries than were found; empty if it has not."""
    errors = [each for each in found.diagnostics if each.severity == "error"]
    if found.error or not errors:
        return found.error
    return " ".join(errors[0].format(found.path.name).split())
