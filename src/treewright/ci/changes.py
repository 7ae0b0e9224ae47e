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
from treewright.lean.project.import_order import by_written_imports
from treewright.lean.project.project import Project
from treewright.lean.project.workspace import find_root
from treewright.lean.session.host_session import HostSession
from treewright.lean.sorries import FileSorries, extract_files
from treewright.tree.repository.git import git, top_of, try_git

_LAKE = ".lake"


@dataclass(frozen=True, slots=True)
class Change:
    """`files` are Lean files below `directory` that differ from `base`, named from `repository`."""

    repository: Path
    directory: Path
    base: str
    files: tuple[str, ...]

    @contextlib.contextmanager
    def at_base(self) -> Iterator[Path]:
        """The repository as it was at the base, with the Lake packages that are there now."""
        with tempfile.TemporaryDirectory(prefix="treewright-base-") as scratch:
            tree = Path(scratch).resolve() / "tree"
            tree.mkdir()
            index = {"GIT_INDEX_FILE": str(tree.parent / "index")}
            git(self.repository, "read-tree", self.base, env=index)
            git(self.repository, "checkout-index", "--all", f"--prefix={tree}/", env=index)
            self._lend_packages(tree)
            yield tree

    def _lend_packages(self, tree: Path) -> None:
        root = find_root(self.directory)
        if root is None or not root.is_relative_to(self.repository):
            return
        there = tree / root.relative_to(self.repository)
        if (root / _LAKE).is_dir() and there.is_dir() and not (there / _LAKE).exists():
            (there / _LAKE).symlink_to(root / _LAKE, target_is_directory=True)


def changed_since(directory: Path, base: str) -> Change:
    """What the files that are checked out changed since they left the history of `base`.

    Without that history (a shallow clone) they are compared with `base` itself.
    """
    if not directory.is_dir():
        raise UsageError(f"there is no directory {directory}")
    repository, here = top_of(directory).resolve(), directory.resolve()
    commit = _commit(repository, base)
    common = try_git(repository, "merge-base", commit, "HEAD")
    start = common.stdout.strip() if common.returncode == 0 else commit
    names = git(repository, "diff", "--name-only", "--no-renames", "-z", start, "--").split("\0")
    files = tuple(name for name in names if _counts(repository / name, here))
    for name in files:
        if not name.isprintable():
            raise UsageError(f"the name of {name!r} cannot be printed; rename the file")
    return Change(repository, here, start, files)


def _commit(repository: Path, base: str) -> str:
    found = None
    if not base.startswith("-"):
        found = try_git(repository, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
    if found is None or found.returncode != 0:
        raise UsageError(f"there is no commit {base!r} in {repository}; fetch it, or name another")
    return found.stdout.strip()


def _counts(path: Path, directory: Path) -> bool:
    """A Lake configuration is a program of Lake's and has nothing to prove."""
    inside = path.suffix == ".lean" and path.name != "lakefile.lean"
    return inside and path.is_relative_to(directory)


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
