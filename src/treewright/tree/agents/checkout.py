"""What an agent did to a worktree, seen through git, and taking back what it may not do.

Trees are written through a scratch index, so that looking at the work changes neither
the worktree nor its index, and untracked files count.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from treewright.tree.agents.base import AgentFailure


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment for a git command: nothing of a surrounding git, no questions asked."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "LC_ALL": "C.UTF-8",
        **extra,
    }


def git(worktree: Path, *arguments: str, **env: str) -> bytes:
    """Runs git; a failure means that the worktree is not usable any more."""
    done = subprocess.run(
        ["git", "-c", "core.fsmonitor=false", *arguments],
        cwd=worktree,
        env=clean_environment(**env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise AgentFailure(
            "worktree_damaged",
            f"git {arguments[0]} failed in {worktree}: {said[0] if said else done.returncode}",
        )
    return done.stdout


@dataclass(frozen=True, slots=True)
class Checkout:
    """A worktree as it was handed to the agents."""

    worktree: Path
    base_commit: str
    base_tree: str
    branch: str | None
    """The ref that HEAD pointed to; None when it was detached."""
    known_refs: frozenset[str]
    """Branches that existed before; one that an agent made and stayed on is removed."""

    @classmethod
    def of(cls, worktree: Path) -> Checkout:
        commit, tree = _text(worktree, "rev-parse", "HEAD", "HEAD^{tree}").split()
        refs = _text(worktree, "for-each-ref", "--format=%(refname)", "refs/heads").split("\n")
        return cls(worktree, commit, tree, _branch(worktree), frozenset(refs))

    def tree(self) -> str:
        """The tree object of the files as they are now, ignored ones left out."""
        with self._scratch_index() as index:
            return _text(self.worktree, "write-tree", GIT_INDEX_FILE=index)

    def diff(self, tree: str) -> str:
        return self._diff_text(tree, "--no-renames")

    def diff_stat(self, tree: str) -> str:
        return self._diff_text(tree, "--stat").rstrip("\n")

    def restore(self, tree: str) -> bool:
        """Makes the files those of `tree` again; says whether they were not."""
        with self._scratch_index() as index:
            if _text(self.worktree, "write-tree", GIT_INDEX_FILE=index) == tree:
                return False
            git(self.worktree, "read-tree", "--reset", "-u", tree, GIT_INDEX_FILE=index)
            return True

    def take_back_head(self) -> bool:
        """Undoes commits and branch switches, keeps the files; says whether there were any."""
        head = _text(self.worktree, "rev-parse", "HEAD")
        branch = _branch(self.worktree)
        if head == self.base_commit and branch == self.branch:
            return False
        if branch != self.branch:
            if self.branch is None:
                git(self.worktree, "update-ref", "--no-deref", "HEAD", head)
            else:
                git(self.worktree, "symbolic-ref", "HEAD", self.branch)
        # Soft keeps what was staged by force; it is refused in the middle of a merge.
        try:
            git(self.worktree, "reset", "-q", "--soft", self.base_commit)
        except AgentFailure:
            git(self.worktree, "reset", "-q", "--mixed", self.base_commit)
        if branch not in (None, self.branch) and branch not in self.known_refs:
            git(self.worktree, "update-ref", "-d", branch)
        return True

    def _diff_text(self, tree: str, *options: str) -> str:
        output = git(
            self.worktree,
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            *options,
            self.base_tree,
            tree,
        )
        return output.decode("utf-8", "replace")

    @contextlib.contextmanager
    def _scratch_index(self) -> Iterator[str]:
        """A copy of the index with every change added; its cached stats make that quick."""
        real = Path(_text(self.worktree, "rev-parse", "--git-path", "index"))
        with tempfile.TemporaryDirectory(prefix="treewright-index-") as directory:
            index = Path(directory) / "index"
            if (self.worktree / real).exists():
                # With its mtime: git compares a file again only if the file is not older.
                shutil.copy2(self.worktree / real, index)
            git(self.worktree, "add", "--all", GIT_INDEX_FILE=str(index))
            yield str(index)


def _text(worktree: Path, *arguments: str, **env: str) -> str:
    return git(worktree, *arguments, **env).decode("utf-8").strip()


def _branch(worktree: Path) -> str | None:
    done = subprocess.run(
        ["git", "symbolic-ref", "-q", "HEAD"],
        cwd=worktree,
        env=clean_environment(),
        capture_output=True,
        check=False,
    )
    return done.stdout.decode("utf-8").strip() or None
