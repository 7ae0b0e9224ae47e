"""A worktree that agents change: its diffs, its snapshots, and the undoing of forbidden changes.

Snapshots are written through a scratch index. So untracked files count, and a snapshot changes
neither the worktree nor its index.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from treewright.tree.agents.backend import AgentFailure
from treewright.tree.repository import refs, staging
from treewright.tree.repository.git import (
    NO_FETCHING,
    GitError,
    command,
    durable,
    environment,
    git,
    require_alive,
    require_space,
    try_git,
)
from treewright.tree.repository.private_repository import private_repository
from treewright.tree.repository.staging import Staged


@dataclass(slots=True)
class PrivateChanges:
    """The agent's changes to its private repository, which are discarded with it."""

    moved: bool = False
    """The agent committed or switched branches."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between the commit that the agents started from and an index."""

    worktree: Path
    base_commit: str
    index: Path

    def diff(self) -> str:
        """Return the change as a patch."""
        return self._text("--no-renames")

    def stat(self) -> str:
        """Return `git diff --stat`; empty only if no file has changed."""
        return self._text("--stat").rstrip("\n")

    def _text(self, *options: str) -> str:
        shown = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
        asked = ("diff", "--cached", *shown, *options, self.base_commit, "--")
        return _git(self.worktree, *asked, index=self.index).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A worktree, and its state before the first agent ran."""

    worktree: Path
    index: Path
    base_commit: str
    branch: str | None
    """The ref that HEAD pointed to; None for a detached HEAD."""
    known_refs: frozenset[str]
    """Branches that existed before. A new branch that an agent leaves checked out is removed."""

    @classmethod
    def of(cls, worktree: Path) -> Checkout:
        """Return the checkout in its present state.

        Raises:
            AgentFailure: git cannot read the worktree.
        """
        try:
            own, _ = refs.git_directories(worktree)
            found = refs.read_refs(worktree)
        except GitError as problem:
            raise AgentFailure("worktree_damaged", str(problem)) from None
        known = frozenset(found.named)
        head = found.head
        return cls(worktree, own.absolute() / "index", head.commit, head.branch, known)

    def tree(self) -> str:
        """Write the present files, without ignored ones, as a tree object; return its id."""
        with self._scratch_index() as index:
            return _text(self.worktree, "write-tree", index=index)

    @contextlib.contextmanager
    def changes(self) -> Iterator[Changes]:
        """Yield the changes of the present files, without ignored ones."""
        with self._scratch_index() as index:
            yield Changes(self.worktree, self.base_commit, index)

    def stage(self) -> Staged:
        """Stage the changes of the present files, without ignored ones."""
        _git(self.worktree, "add", "--all")
        output = _git(self.worktree, *staging.STAGED_CHANGES, self.base_commit, "--")
        return Staged.parse(output.decode("utf-8", "surrogateescape"))

    def restore(self, tree: str) -> bool:
        """Restore the files of `tree`. Return whether any file was different."""
        with self._scratch_index() as index:
            if _text(self.worktree, "write-tree", index=index) == tree:
                return False
            _git(self.worktree, "read-tree", "--reset", "-u", tree, index=index)
            return True

    def take_back_head(self) -> bool:
        """Undo commits and branch switches, and keep the files.

        Returns:
            Whether there was a commit or switch to undo.

        Raises:
            AgentFailure: git cannot read the worktree any more.
        """
        try:
            found = refs.read_head(self.worktree)
        except GitError as problem:
            raise AgentFailure("worktree_damaged", f"after an agent ran: {problem}") from None
        head, branch = found.commit, found.branch
        if head == self.base_commit and branch == self.branch:
            return False
        if branch != self.branch:
            if self.branch is None:
                _git(self.worktree, "update-ref", "--no-deref", "HEAD", head)
            else:
                _git(self.worktree, "symbolic-ref", "HEAD", self.branch)
        # A soft reset keeps ignored files that are staged. Git refuses it during a merge.
        try:
            _git(self.worktree, "reset", "-q", "--soft", self.base_commit)
        except AgentFailure:
            _git(self.worktree, "reset", "-q", "--mixed", self.base_commit)
        if branch not in (None, self.branch) and branch not in self.known_refs:
            _git(self.worktree, "update-ref", "-d", branch)
        return True

    @contextlib.contextmanager
    def in_private(self) -> Iterator[PrivateChanges]:
        """Give the worktree a private repository while the block runs.

        Ignored files that the agent staged stay staged.

        Raises:
            AgentFailure: the agent replaced or removed `.git` of the worktree.
        """
        changes = PrivateChanges()
        with private_repository(self.worktree) as unchanged:
            yield changes
            if not unchanged():
                raise AgentFailure(
                    "worktree_damaged", "the agent replaced or removed the worktree's .git"
                )
            head, branch = (
                try_git(self.worktree, *asked, env=NO_FETCHING).stdout.strip()
                for asked in (
                    ("rev-parse", "-q", "--verify", "HEAD"),
                    ("symbolic-ref", "-q", "HEAD"),
                )
            )
            changes.moved = (head, branch or None) != (self.base_commit, self.branch)
            listed = ("ls-files", "--cached", "--ignored", "--exclude-standard", "-z")
            forced: list[str] = []
            with contextlib.suppress(GitError):  # the agent damaged the index: nothing is known
                forced = git(self.worktree, *listed, env=NO_FETCHING).split("\0")
        present = [path for path in forced if path and (self.worktree / path).is_file()]
        if present:
            # `git add --force` takes paths as arguments only, and there may be too many for that.
            stage = ("update-index", "--add", "--replace", "-z", "--stdin")
            listed = "".join(f"{path}\0" for path in present)
            git(self.worktree, *stage, stdin=listed, env=durable())

    @contextlib.contextmanager
    def _scratch_index(self) -> Iterator[Path]:
        """Yield a copy of the index with every change added.

        A copy keeps the cached file stats, so that git reads changed files only.
        """
        # In the directory of the index, so that a crash leaves it where worktree removal finds it.
        index = self.index.with_name("treewright-scratch-index")
        try:
            if self.index.exists():
                # Keep the modification time: git reads files that are newer than the index again.
                shutil.copy2(self.index, index)
            _git(self.worktree, "add", "--all", index=index)
            yield index
        finally:
            index.unlink(missing_ok=True)


def _git(worktree: Path, *arguments: str, index: Path | None = None) -> bytes:
    """Run git and return bytes, because text mode would turn CRLF in a diff into LF."""
    scratch = {"GIT_INDEX_FILE": str(index)} if index else {}
    try:
        done = subprocess.run(
            command(*arguments),
            cwd=worktree,
            env=environment(cwd=worktree) | durable() | scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        # Git ran in the worktree before, so an agent has removed the directory or its permissions.
        raise AgentFailure(
            "worktree_damaged", f"an agent removed or closed the worktree: {error.strerror}"
        ) from None
    require_alive(done.returncode, arguments[0], worktree)
    if done.returncode != 0:
        output = done.stderr.decode("utf-8", "replace")
        require_space(output, worktree)
        lines = output.strip().splitlines()
        raise AgentFailure(
            "worktree_damaged",
            f"git {arguments[0]} failed in the worktree after an agent ran: "
            f"{lines[-1] if lines else done.returncode}",
        )
    return done.stdout


def _text(worktree: Path, *arguments: str, index: Path | None = None) -> str:
    return _git(worktree, *arguments, index=index).decode("utf-8", "surrogateescape").strip()
