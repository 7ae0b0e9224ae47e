"""What an agent did to a worktree, seen through git, and taking back what it may not do.

Trees are written through a scratch index, so that looking at the work changes neither
the worktree nor its index, and untracked files count.
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
class Seen:
    """What the agent did in its own repository that is gone with it."""

    moved: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between what was handed to the agents and what an index holds."""

    worktree: Path
    base_commit: str
    index: Path

    def diff(self) -> str:
        return self._text("--no-renames")

    def stat(self) -> str:
        """Nothing only if nothing has changed."""
        return self._text("--stat").rstrip("\n")

    def _text(self, *options: str) -> str:
        shown = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
        asked = ("diff", "--cached", *shown, *options, self.base_commit, "--")
        return _git(self.worktree, *asked, index=self.index).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A worktree as it was handed to the agents."""

    worktree: Path
    index: Path
    base_commit: str
    branch: str | None
    """The ref that HEAD pointed to; None when it was detached."""
    known_refs: frozenset[str]
    """Branches that existed before; one that an agent made and stayed on is removed."""

    @classmethod
    def of(cls, worktree: Path) -> Checkout:
        try:
            own, _ = refs.git_directories(worktree)
            found = refs.read_refs(worktree)
        except GitError as problem:
            raise AgentFailure("worktree_damaged", str(problem)) from None
        known = frozenset(found.named)
        head = found.head
        return cls(worktree, own.absolute() / "index", head.commit, head.branch, known)

    def tree(self) -> str:
        """The tree object of the files as they are now, ignored ones left out."""
        with self._scratch_index() as index:
            return _text(self.worktree, "write-tree", index=index)

    @contextlib.contextmanager
    def changes(self) -> Iterator[Changes]:
        """What the files as they are now, ignored ones left out, change."""
        with self._scratch_index() as index:
            yield Changes(self.worktree, self.base_commit, index)

    def stage(self) -> Staged:
        """Stages what the files as they are now, ignored ones left out, change."""
        _git(self.worktree, "add", "--all")
        said = _git(self.worktree, *staging.STAGED_CHANGES, self.base_commit, "--")
        return Staged.parse(said.decode("utf-8", "surrogateescape"))

    def restore(self, tree: str) -> bool:
        """Makes the files those of `tree` again; says whether they were not."""
        with self._scratch_index() as index:
            if _text(self.worktree, "write-tree", index=index) == tree:
                return False
            _git(self.worktree, "read-tree", "--reset", "-u", tree, index=index)
            return True

    def take_back_head(self) -> bool:
        """Undoes commits and branch switches, keeps the files; says whether there were any."""
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
        # Soft keeps what was staged by force; it is refused in the middle of a merge.
        try:
            _git(self.worktree, "reset", "-q", "--soft", self.base_commit)
        except AgentFailure:
            _git(self.worktree, "reset", "-q", "--mixed", self.base_commit)
        if branch not in (None, self.branch) and branch not in self.known_refs:
            _git(self.worktree, "update-ref", "-d", branch)
        return True

    @contextlib.contextmanager
    def in_private(self) -> Iterator[Seen]:
        """While the block runs, git in the worktree works on a repository of the agent's own.
        Files that the agent staged although they are ignored stay staged."""
        seen = Seen()
        with private_repository(self.worktree) as unchanged:
            yield seen
            if not unchanged():
                raise AgentFailure(
                    "worktree_damaged", "the agent replaced or removed the worktree's .git"
                )
            asked = ("rev-parse", "-q", "--verify", "HEAD")
            head = try_git(self.worktree, *asked, env=NO_FETCHING).stdout.strip()
            seen.moved = (head, _branch(self.worktree)) != (self.base_commit, self.branch)
            forced = self._ignored_but_staged()
        present = [path for path in forced if (self.worktree / path).is_file()]
        if present:
            # As `add --force`, which takes them as arguments: there may be too many for that.
            stage = ("update-index", "--add", "--replace", "-z", "--stdin")
            listed = "".join(f"{path}\0" for path in present)
            git(self.worktree, *stage, stdin=listed, env=durable())

    def _ignored_but_staged(self) -> list[str]:
        listed = ("ls-files", "--cached", "--ignored", "--exclude-standard", "-z")
        try:
            staged = git(self.worktree, *listed, env=NO_FETCHING)
            return [path for path in staged.split("\0") if path]
        except GitError:  # its index is no index any more; then nothing was staged
            return []

    @contextlib.contextmanager
    def _scratch_index(self) -> Iterator[Path]:
        """A copy of the index with every change added; its cached stats make that quick."""
        # Beside the index, so that removing the worktree removes what a crash left of it.
        index = self.index.with_name("treewright-scratch-index")
        try:
            if self.index.exists():
                # With its mtime: git compares a file again only if the file is not older.
                shutil.copy2(self.index, index)
            _git(self.worktree, "add", "--all", index=index)
            yield index
        finally:
            index.unlink(missing_ok=True)


def _git(worktree: Path, *arguments: str, index: Path | None = None) -> bytes:
    """Runs git, bytes out: text mode would turn the CRLF of a diff into LF."""
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
        # There was a worktree, and git in it: an agent has removed it, or its right to be there.
        raise AgentFailure(
            "worktree_damaged", f"the worktree was taken away by an agent: {error.strerror}"
        ) from None
    require_alive(done.returncode, arguments[0], worktree)
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace")
        require_space(words, worktree)
        said = words.strip().splitlines()
        raise AgentFailure(
            "worktree_damaged",
            f"git {arguments[0]} failed in the worktree after an agent ran: "
            f"{said[-1] if said else done.returncode}",
        )
    return done.stdout


def _text(worktree: Path, *arguments: str, index: Path | None = None) -> str:
    return _git(worktree, *arguments, index=index).decode("utf-8", "surrogateescape").strip()


def _branch(worktree: Path) -> str | None:
    asked = ("symbolic-ref", "-q", "HEAD")
    return try_git(worktree, *asked, env=NO_FETCHING).stdout.strip() or None
