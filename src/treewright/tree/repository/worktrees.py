"""The git worktrees and branches of a run, one for each node and each candidate.

A candidate has `cand/<eval_id>` on the branch `treewright/<run>/cand/<eval_id>` while its
evaluation runs, a node has `wt/<node_id>` on `treewright/<run>/node/<node_id>`. Every operation can
be repeated after a crash at any point inside it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treewright.kernel.storage import file_lock, untrusted
from treewright.tree.records import layout
from treewright.tree.repository import refs, worktree_records
from treewright.tree.repository.git import GitError, durable, git, try_git
from treewright.tree.repository.objects import listing
from treewright.tree.repository.private_repository import remove_submodules, restore_pointer
from treewright.tree.repository.staging import Staged, differences

_BRANCHES_PER_COMMAND = 500
_LARGEST_POINTER = 1 << 16
_CAUSED_BY_CANDIDATE = (
    *(PermissionError, FileExistsError, FileNotFoundError, NotADirectoryError),
    *(IsADirectoryError, untrusted.NotPlain),
)
"""Errors that a candidate's code can cause in its worktree; a full disk is not among them."""


@dataclass(frozen=True, slots=True)
class Commit:
    commit: str
    tree: str


class Worktrees:
    """The worktrees and refs of one run."""

    def __init__(self, repo: Path, run_dir: Path, run_id: str) -> None:
        self.repo = repo
        self.run_dir = run_dir
        self._run_id = run_id
        self._branches = layout.branches(run_id)

    def candidate_path(self, eval_id: str) -> Path:
        return self.run_dir / layout.CANDIDATES / eval_id

    def node_path(self, node_id: str) -> Path:
        return self.run_dir / layout.worktree(node_id)

    def node_ref(self, node_id: str) -> str:
        return layout.node_ref(self._run_id, node_id)

    def _candidate_branch(self, eval_id: str) -> str:
        return layout.candidate_ref(self._run_id, eval_id).removeprefix("refs/heads/")

    def add_candidate(self, eval_id: str, commit: str) -> Path:
        """Check `commit` out in a new worktree on the candidate's own branch; return its path.

        Git refuses to move a branch on which a worktree of the user stands: a GitError.
        """
        path = self.candidate_path(eval_id)
        branch = self._candidate_branch(eval_id)
        add = ("worktree", "add", "--quiet", "--no-checkout", "-B", branch, str(path), commit)
        with self._lock():
            if os.path.lexists(path) or try_git(self.repo, *add).returncode != 0:
                self._remove_candidate(eval_id)
                git(self.repo, *add)
        # Without the lock: writing the files takes longest, and touches nothing that is shared.
        git(path, "reset", "--hard", "--quiet", commit)
        return path

    def commit_candidate(
        self,
        eval_id: str,
        message: str,
        date: int,
        staged: Staged | None = None,
        parent: str | None = None,
    ) -> Commit:
        """Commit the staged changes, then empty the worktree and check the commit out.

        The measured files are therefore exactly those of the commit.

        Args:
            eval_id: The candidate.
            message: The commit message; the evaluation's idea.
            date: The time of the commit, in seconds since 1970.
            staged: The changes that were staged, if they are known. Others are a GitError.
            parent: The commit that `staged` is compared with.
        """
        path = self.candidate_path(eval_id)
        git(
            path,
            "commit",
            "--quiet",
            "--no-verify",
            "--cleanup=whitespace",
            "--file=-",  # an argument can be neither as long as an idea's title nor have a NUL
            stdin=message.replace("\0", "\ufffd"),
            date=date,
            env=durable(),
        )
        if parent is None:
            done = resolve(path, "HEAD")
        else:
            tree, done = self._resolve_both(path, parent)
            if staged is not None:
                # A process that the agent left behind may have staged more in the meantime.
                (changes,) = differences(self.repo, [(tree, done.tree)])
                if set(changes) != set(staged.changes):
                    raise GitError("what was committed is not what was staged")
        self._rewrite(eval_id, done.commit)
        return done

    def _resolve_both(self, path: Path, parent: str) -> tuple[str, Commit]:
        """Return the tree of the parent, and the commit at HEAD of the candidate's worktree."""
        asked = (f"{parent}^{{tree}}", "HEAD", "HEAD^{tree}")
        tree, commit, own_tree = git(path, "rev-parse", *asked).split()
        return tree, Commit(commit, own_tree)

    def pristine_candidate(self, eval_id: str, commit: str) -> Path:
        """Return the candidate's worktree with exactly the files of the commit."""
        path = self.candidate_path(eval_id)
        if path.is_symlink() or not (path / ".git").exists():
            return self.add_candidate(eval_id, commit)
        restore_pointer(path)
        return self._rewrite(eval_id, commit)

    def _rewrite(self, eval_id: str, commit: str) -> Path:
        path = self.candidate_path(eval_id)
        try:
            self._empty_and_reset(path, commit)
        except GitError:  # a command removed the right to write, damaged git's record, or worse
            return self.add_candidate(eval_id, commit)
        return path

    def _empty_and_reset(self, path: Path, commit: str) -> None:
        """Empty the worktree and check the commit out.

        A plain `git reset` is not enough. It keeps a file whose size and time it has noted, with
        its attributes and hard links; it does not see the conversions of `.gitattributes` that have
        been removed; it follows a link in place of a directory; and it leaves pipes.
        """
        own, _ = refs.git_directories(path)
        if not worktree_records.is_record_of(self._common_directory(), own, path):
            raise GitError(f"{path.name} is not the worktree that was made there")
        if refs.read_head(path).branch != layout.candidate_ref(self._run_id, path.name):
            raise GitError(f"{path.name} is not on its own branch")
        try:
            pointer = untrusted.read(path / ".git", _LARGEST_POINTER)
            for name in set(os.listdir(path)) - {".git"}:  # noqa: PTH208
                untrusted.remove_small_tree(path / name)
            # Under the lock: another thread would prune a worktree without its `.git`.
            with self._lock():
                untrusted.remove_small_tree(path)
                path.mkdir()
                with untrusted.create(path / ".git") as file:
                    file.write(pointer)
            (own / "index").unlink(missing_ok=True)  # it notes sizes, times and skipped files
        except _CAUSED_BY_CANDIDATE as error:
            raise GitError(f"cannot empty {path.name}: {error}") from error
        git(path, "reset", "--hard", "--quiet", commit)
        self._empty_submodules(path, commit)

    def _empty_submodules(self, path: Path, commit: str) -> None:
        """Empty the directories of submodules, which git neither fills nor cleans."""
        for submodule in listing(self.repo, commit).submodules:
            try:
                _make_empty(path, PurePosixPath(submodule).parts)
            except OSError as error:
                raise GitError(f"cannot empty {submodule}: {error.strerror}") from error
        remove_submodules(path)

    def remove_candidate(self, eval_id: str) -> None:
        """Remove the candidate's directory, worktree record and branch, as far as they exist."""
        untrusted.remove_tree(self.candidate_path(eval_id))  # without the lock: this takes longest
        with self._lock():
            self._remove_candidate(eval_id)

    def _remove_candidate(self, eval_id: str) -> None:
        self._remove(self.candidate_path(eval_id))
        self._delete_branches({eval_id} & self._pinned())

    def remove_candidates(self, eval_ids: Collection[str]) -> None:
        """Remove several candidates with few git commands."""
        if not eval_ids:
            return
        directories = {eval_id: self.candidate_path(eval_id) for eval_id in eval_ids}
        present = [path for path in directories.values() if os.path.lexists(path)]
        for path in present:
            untrusted.remove_tree(path)
        with self._lock():
            pinned = self._pinned() & set(eval_ids)
            if present or pinned:
                # Before the branches: git keeps those that a worktree record names.
                self._remove_records(list(directories.values()))
            self._delete_branches(pinned)

    def _pinned(self) -> set[str]:
        """Return the ids of the candidates that have a branch."""
        prefix = layout.candidate_ref(self._run_id, "")
        return {ref.removeprefix(prefix) for ref in refs.refs_below(self.repo, prefix)}

    def _delete_branches(self, pinned: Iterable[str]) -> None:
        """Delete candidates' branches; git keeps those that a worktree of the user is on."""
        branches = [self._candidate_branch(name) for name in sorted(pinned)]
        for start in range(0, len(branches), _BRANCHES_PER_COMMAND):
            some = branches[start : start + _BRANCHES_PER_COMMAND]
            delete = ("branch", "-D", "--quiet", *some)
            if try_git(self.repo, *delete).returncode != 0:
                self._remove_dead_records()
                try_git(self.repo, *delete)

    def add_node(self, node_id: str, commit: str) -> None:
        """Give a node its branch and its worktree, unless it has them already."""
        path, ref = self.node_path(node_id), self.node_ref(node_id)
        branch = ref.removeprefix("refs/heads/")
        if _is_written(path) and _is_at(path, ref, commit):
            return
        add = ("worktree", "add", "--quiet", "-B", branch, str(path), commit)
        with self._lock():
            if path.exists() or try_git(self.repo, *add).returncode != 0:
                self._remove(path)
                git(self.repo, *add)

    def repair(self, nodes: dict[str, str], candidates: Iterable[str]) -> None:
        """Restore the worktrees of nodes and remove candidates, after a crash.

        Args:
            nodes: The commit of every node.
            candidates: The candidates that stay.
        """
        worktree_records.remove_pipes(self._common_directory())
        with self._lock():
            self._remove_dead_records()
        # The former owner of the run is dead, and so are its git commands that held these locks.
        refs.remove_locks(self.repo, self._branches)
        pinned = self._refs()
        directory = self.run_dir / layout.CANDIDATES
        present = {path.name for path in directory.iterdir()} if directory.is_dir() else set()
        present |= {name for kind, name in pinned if kind == "cand"}
        self.remove_candidates(present - set(candidates))
        for node_id, commit in nodes.items():
            restore_pointer(self.node_path(node_id))
            is_pinned = pinned.get(("node", node_id)) == commit
            if not (is_pinned and _is_written(self.node_path(node_id))):
                try:
                    self.add_node(node_id, commit)
                except GitError:
                    self._require_commit(node_id, commit)
                    raise

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the repository's lock: git's worktree commands disturb each other.

        The lock excludes other threads, other processes and other runs.
        """
        with file_lock.holding(self._common_directory() / "treewright.lock"):
            yield

    def _common_directory(self) -> Path:
        plain = self.repo / ".git"
        return plain if plain.is_dir() else refs.git_directories(self.repo)[1]

    def _refs(self) -> dict[tuple[str, str], str]:
        """Return the commit of every branch of this run, by kind (`cand` or `node`) and id."""
        found: dict[tuple[str, str], str] = {}
        for ref, commit in refs.refs_below(self.repo, self._branches).items():
            kind, _, name = ref.removeprefix(self._branches).partition("/")
            found[kind, name] = commit
        return found

    def _require_commit(self, node_id: str, commit: str) -> None:
        if try_git(self.repo, "cat-file", "-e", f"{commit}^{{commit}}").returncode != 0:
            raise GitError(
                f"commit {commit[:12]} of node {node_id} is not in {self.repo}; fetch it back "
                "from where the repository was copied, or start a new run"
            )

    def _remove(self, path: Path) -> None:
        untrusted.remove_tree(path)
        self._remove_records([path])
        untrusted.remove_tree(path)

    def _remove_records(self, gone: Sequence[Path]) -> None:
        """Remove the records of missing worktrees, through git only if it must be asked.

        `git worktree prune` would forget worktrees of the user that lie on an unplugged disk.
        """
        common = self._common_directory()
        if worktree_records.remove_records(common, gone):
            return
        for path in gone:
            if not worktree_records.remove_records(common, [path]):  # it may be locked
                try_git(self.repo, "worktree", "remove", "--force", "--force", str(path))
        self._remove_dead_records()

    def _remove_dead_records(self) -> None:
        with contextlib.suppress(OSError):
            worktree_records.remove_dead_records(self._common_directory(), self.run_dir)


def _make_empty(directory: Path, parts: Iterable[str]) -> None:
    """Make an empty directory, replacing links on the way to it by directories."""
    for name in parts:
        directory /= name
        if directory.is_symlink() or not directory.is_dir():
            untrusted.remove_tree(directory)
            directory.mkdir()
    untrusted.remove_tree(directory)
    directory.mkdir()


def _is_written(path: Path) -> bool:
    """Return whether a worktree has its files: git writes the index after all others."""
    if not (path / ".git").exists():
        return False
    try:
        return (refs.git_directories(path)[0] / "index").exists()
    except GitError:
        return False


def _is_at(path: Path, ref: str, commit: str) -> bool:
    try:
        return refs.read_head(path) == refs.Head(commit, ref)
    except GitError:
        return False


def resolve(cwd: Path, revision: str) -> Commit:
    commit, tree = git(cwd, "rev-parse", revision, f"{revision}^{{tree}}").split()
    return Commit(commit, tree)


def export(repo: Path, commit: str, directory: Path) -> None:
    """Write the files of a commit to a new directory that is not a worktree."""
    untrusted.remove_tree(directory)
    directory.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="treewright-index-") as scratch:
        env = {
            "GIT_DIR": str(refs.git_directories(repo)[0].absolute()),
            "GIT_WORK_TREE": str(directory.absolute()),
            "GIT_INDEX_FILE": str(Path(scratch) / "index"),
        }
        git(directory, "read-tree", "-u", "--reset", commit, env=env)
