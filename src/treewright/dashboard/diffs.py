"""Diffs between two commits of a run's repository."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path

import msgspec

from treewright.tree.repository import git

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_MAX_BYTES = 400_000
_SECONDS = 20


class Diff(msgspec.Struct, frozen=True):
    """A unified diff, or the reason why there is none. `cut` means that the text is incomplete."""

    text: str = ""
    cut: bool = False
    problem: str = ""


@lru_cache(maxsize=64)
def diff_commits(repo: Path, before: str, after: str) -> Diff:
    """Return the diff of two commits, cut to a length that a page can show.

    Programs that the repository's configuration names for diffs or for fetching are not run.
    """
    if not (_COMMIT.fullmatch(before) and _COMMIT.fullmatch(after)):
        return Diff(problem="not a commit")
    if not (repo / ".git").exists():
        return Diff(problem="the run's repository is not here")
    plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--find-renames")
    command = git.command("diff", *plain, before, after, "--")
    with subprocess.Popen(
        command,
        cwd=repo,
        env=git.environment(cwd=repo) | git.NO_FETCHING,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        data = running.stdout.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            running.kill()
            return Diff(data[:_MAX_BYTES].decode("utf-8", "replace"), cut=True)
        try:
            status = running.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            running.kill()
            status = -1
    if status != 0:
        return Diff(problem="the commit is no longer in the repository")
    return Diff(data.decode("utf-8", "replace"))
