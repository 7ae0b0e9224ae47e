"""The `git` binary, called the same way everywhere: no hooks, no prompts, no signing.

A candidate's commit must not depend on who runs the search or when, so identity and
dates are given, and the user's hooks, filters of the moment and environment are not.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from treewright.kernel.errors import TreewrightError, UsageError

_SETTINGS = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "commit.gpgSign=false",
    "-c", "core.fsmonitor=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "core.quotePath=false",
    "-c", "advice.detachedHead=false",
    "-c", "user.name=Treewright",
    "-c", "user.email=treewright@localhost",
)  # fmt: skip
_INHERITED_LOCATION = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")


class GitError(TreewrightError):
    """A git command failed; the message is git's own last line."""


def environment(date: int | None = None) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if key not in _INHERITED_LOCATION}
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    if date is not None:
        env |= {"GIT_AUTHOR_DATE": f"{date} +0000", "GIT_COMMITTER_DATE": f"{date} +0000"}
        env |= {"GIT_AUTHOR_NAME": "Treewright", "GIT_COMMITTER_NAME": "Treewright"}
        env |= {"GIT_AUTHOR_EMAIL": "treewright@localhost"}
        env |= {"GIT_COMMITTER_EMAIL": "treewright@localhost"}
    return env


def git(cwd: Path, *args: str, date: int | None = None, stdin: str | None = None) -> str:
    """Runs git and returns its stdout; a failure is a GitError."""
    done = attempt(cwd, *args, date=date, stdin=stdin)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise GitError(f"git {args[0]} failed in {cwd}: {lines[-1]}")
    return done.stdout


def attempt(
    cwd: Path, *args: str, date: int | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs git where a non-zero exit is an answer."""
    try:
        return subprocess.run(
            ["git", *_SETTINGS, *args],
            cwd=cwd,
            env=environment(date),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except FileNotFoundError:
        if not cwd.is_dir():
            raise GitError(f"git {args[0]}: no directory {cwd}") from None
        raise UsageError("git is not installed or not on PATH; install git 2.20 or newer") from None


def find_repository(path: Path) -> Path:
    """The root of the repository that contains `path`."""
    if not path.is_dir():
        raise UsageError(f"no directory {path}; give the target repository with --repo")
    done = attempt(path, "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        raise UsageError(f"{path} is not inside a git repository; give one with --repo")
    return Path(done.stdout.rstrip("\n"))


def head_commit(repo: Path) -> str:
    done = attempt(repo, "rev-parse", "--verify", "HEAD^{commit}")
    if done.returncode != 0:
        raise UsageError(f"{repo} has no commit yet; commit the code to be improved first")
    return done.stdout.strip()


def require_clean(repo: Path) -> None:
    """Every node is an immutable commit, so the root must be one too."""
    changes = git(repo, "status", "--porcelain", "--untracked-files=normal")
    if changes.strip():
        first = changes.splitlines()[0]
        raise UsageError(
            f"Root working tree must be clean to start a run (first change: {first}). "
            "Commit or stash local changes, then retry."
        )


def hide_from_status(repo: Path, name: str) -> None:
    """Keeps `name/` out of `git status` through .git/info/exclude, the user's files untouched."""
    if attempt(repo, "check-ignore", "-q", f"{name}/x").returncode == 0:
        return
    exclude = repo / git(repo, "rev-parse", "--git-path", "info/exclude").rstrip("\n")
    exclude.parent.mkdir(parents=True, exist_ok=True)
    before = exclude.read_text() if exclude.exists() else ""
    if before and not before.endswith("\n"):
        before += "\n"
    exclude.write_text(f"{before}/{name}/\n")
