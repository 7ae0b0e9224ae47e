"""Calls of the `git` binary without hooks, prompts or signing.

A candidate's commit must not depend on the user or the time of the search. Identity and dates are
therefore given, and the user's hooks and location variables are not used.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treewright.kernel.errors import StorageError, TreewrightError, UsageError

_SETTINGS = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "commit.gpgSign=false",
    "-c", "core.fsmonitor=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "core.quotePath=false",
    "-c", "core.autocrlf=false",
    "-c", "core.attributesFile=/dev/null",
    "-c", "core.splitIndex=false",
    "-c", "core.sparseCheckout=false",
    "-c", "i18n.commitEncoding=UTF-8",
    "-c", "advice.detachedHead=false",
    "-c", "submodule.recurse=false",
    "-c", "user.name=Treewright",
    "-c", "user.email=treewright@localhost",
)  # fmt: skip
_WITHOUT_USER_IGNORES = ("-c", "core.excludesFile=/dev/null")
_ENDING = [getattr(signal, name, None) for name in ("SIGKILL", "SIGTERM")]
_NO_COMMIT = "{} has no commit yet; commit the code to be improved first"
_RECORD_GONE = re.compile(
    r"^fatal: (?:Invalid path '.*/worktrees/.*': No such file"
    r"|failed to read '?.*/worktrees/.*/(?:commondir|locked)'?: )",
    re.MULTILINE,
)
_MORE_TRIES = 9
_NO_SPACE = ("No space left on device", "Disk quota exceeded", "Out of diskspace")
NO_FETCHING = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Environment for a repository that a candidate could configure: its configuration names the
command that fetches missing objects, so nothing is fetched."""
_DURABLE = (("core.fsync", "loose-object,reference"), ("core.fsyncMethod", "batch"))
_INHERITED_LOCATION = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")
_INHERITED_LOCATION_BYTES = frozenset(map(os.fsencode, _INHERITED_LOCATION))


class GitError(TreewrightError):
    """A git command failed. The message is git's own last line."""


class GitKilled(TreewrightError):
    """A git command was killed, for instance because the machine had no memory left.

    Unlike a GitError it says nothing about the repository or a candidate.
    """


def environment(date: int | None = None, cwd: Path | None = None) -> dict[str, str]:
    """Return the environment for a git command.

    Args:
        date: The time of a commit, in seconds since 1970; with it the author is Treewright.
        cwd: The only directory where git looks for a repository. Without it git would take a
            worktree that lost its `.git` for the repository around it.
    """
    inherited = {os.fsdecode(name): os.fsdecode(value) for name, value in _inherited().items()}
    return inherited | _own(date, cwd)


def _inherited() -> dict[Any, Any]:
    """Return this process's environment without git locations; bytes where the system has them."""
    if not os.supports_bytes_environ:
        return {k: v for k, v in os.environ.items() if k not in _INHERITED_LOCATION}
    return {k: v for k, v in os.environb.items() if k not in _INHERITED_LOCATION_BYTES}


def _own(date: int | None, cwd: Path | None) -> dict[str, str]:
    env = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    env["GIT_NO_REPLACE_OBJECTS"] = "1"  # a commit keeps the content of its name
    if date is not None:
        env |= {"GIT_AUTHOR_DATE": f"@{date} +0000", "GIT_COMMITTER_DATE": f"@{date} +0000"}
        env |= {"GIT_AUTHOR_NAME": "Treewright", "GIT_COMMITTER_NAME": "Treewright"}
        env |= {"GIT_AUTHOR_EMAIL": "treewright@localhost"}
        env |= {"GIT_COMMITTER_EMAIL": "treewright@localhost"}
    if cwd is not None:
        env["GIT_CEILING_DIRECTORIES"] = str(cwd.absolute().parent)
    return env


def durable() -> dict[str, str]:
    """Return variables that make git sync objects and refs to disk.

    The journal names commits, so commits and their files must survive a power cut as it does. The
    settings come after those that the user has set in the same way, such as `safe.directory`.
    """
    given = os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isdecimal() else 0
    env = {"GIT_CONFIG_COUNT": str(first + len(_DURABLE))}
    for number, (key, value) in enumerate(_DURABLE, first):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def require_alive(returncode: int, name: str, cwd: Path) -> None:
    """Raise a GitKilled if a git command was ended by a signal."""
    if -returncode in _ENDING:
        raise GitKilled(f"git {name} was ended by signal {-returncode} in {cwd}")


def require_space(stderr: str, cwd: Path) -> None:
    """Raise a StorageError if git failed because the disk is full: no fault of a candidate."""
    if any(words in stderr for words in _NO_SPACE):
        raise StorageError(
            f"no space left while git worked in {cwd}; free some and run the same command again: "
            "what was recorded before is kept"
        )


def command(*args: str, user_ignores: bool = False) -> list[str]:
    """Return the command line of a git command, for callers that need bytes."""
    ignores = () if user_ignores else _WITHOUT_USER_IGNORES
    return ["git", *_SETTINGS, *ignores, *args]


def git(
    cwd: Path,
    *args: str,
    date: int | None = None,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    user_ignores: bool = False,
) -> str:
    """Run git and return its stdout.

    Raises:
        GitError: The command failed.
    """
    done = try_git(cwd, *args, date=date, stdin=stdin, env=env, user_ignores=user_ignores)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        # Lines after the fatal one may be advice.
        fatal = [line for line in lines if line.startswith("fatal: ")] or lines
        raise GitError(f"git {args[0]} failed in {cwd}: {fatal[-1]}")
    return done.stdout


def try_git(
    cwd: Path,
    *args: str,
    date: int | None = None,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    user_ignores: bool = False,
    look_above: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run git and return the finished process, whatever its exit code.

    Git runs in a separate session: a Ctrl-C in the terminal must not make a git command fail.

    Raises:
        GitKilled: The command was ended by a signal.
    """
    own: dict[Any, Any] = {**_own(date, None if look_above else cwd), **(env or {})}
    if os.supports_bytes_environ:
        own = {os.fsencode(k): os.fsencode(v) for k, v in own.items()}
    surroundings = {**_inherited(), **own}
    given = None if stdin is None else stdin.encode("utf-8", "surrogateescape")
    full = command(*args, user_ignores=user_ignores)
    done = _answer(cwd, args[0], full, surroundings, given)
    for _ in range(_MORE_TRIES):
        # Git lists the records of worktrees and then reads each. If the user removes one in
        # between, or is making one, git fails before it has changed anything.
        if done.returncode == 0 or not _RECORD_GONE.search(done.stderr):
            break
        done = _answer(cwd, args[0], full, surroundings, given)
    return done


def _answer(
    cwd: Path, name: str, full: list[str], env: dict[Any, Any], given: bytes | None
) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            full,
            cwd=cwd,
            env=env,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            check=False,
            start_new_session=True,
        )
    except FileNotFoundError:
        if not cwd.is_dir():
            raise GitError(f"git {name}: no directory {cwd}") from None
        raise UsageError("git is not installed or not on PATH; install git 2.20 or newer") from None
    except NotADirectoryError:
        raise GitError(f"git {name}: no directory {cwd}") from None
    except PermissionError as error:
        raise GitError(f"git {name} cannot run in {cwd}: {error.strerror}") from None
    require_alive(done.returncode, name, cwd)
    # Decoded here: a text stream would turn \r in a file's name into \n.
    out, err = (said.decode("utf-8", "surrogateescape") for said in (done.stdout, done.stderr))
    if done.returncode != 0:
        require_space(err, cwd)
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def find_repository(path: Path) -> Path:
    """Return the root of the repository that contains `path`."""
    if not path.is_dir():
        raise UsageError(f"no directory {path}; give the target repository with --repo")
    if os.pathsep in str(path.resolve()):
        # GIT_CEILING_DIRECTORIES, which keeps git inside a candidate, cannot name it.
        raise UsageError(f"{path.resolve()} has a {os.pathsep!r} in its path; rename a directory")
    _require_text(path.resolve())
    return top_of(path, "; give one with --repo")


def top_of(path: Path, hint: str = "") -> Path:
    """Return the root of the working tree around `path`; `hint` ends the message of an error."""
    done = try_git(path, "rev-parse", "--show-toplevel", look_above=True)
    if done.returncode == 0:
        return Path(done.stdout.rstrip("\n"))
    said = done.stderr.partition("\n")[0].removeprefix("fatal: ")
    if "dubious ownership" in said:
        where = said.partition("'")[2].rpartition("'")[0] or path.resolve()
        raise UsageError(
            f"{where} belongs to another user, and git does not open it; if you trust it: "
            f"git config --global --add safe.directory {shlex.quote(str(where))}"
        )
    if said and "not a git repository" not in said:
        raise UsageError(f"git finds no working tree at {path}: {said}{hint}")
    raise UsageError(f"{path} is not inside a git repository{hint}")


def _require_text(path: Path) -> None:
    """Raise a UsageError if a path is not UTF-8: the records of a run name it as text."""
    shown = os.fsencode(path).decode("utf-8", "backslashreplace")
    if shown != str(path):
        raise UsageError(f"{shown} has bytes in its path that are not UTF-8; rename a directory")


def head_commit(repo: Path) -> str:
    done = try_git(repo, "rev-parse", "--verify", "HEAD^{commit}")
    if done.returncode != 0:
        raise UsageError(_NO_COMMIT.format(repo))
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Root:
    """The commit that a run starts from."""

    commit: str
    tree: str
    time: int

    @classmethod
    def of(cls, repo: Path) -> Root:
        """Return the commit at HEAD."""
        # Not `log` or `show`, whose output the user can configure.
        done = try_git(repo, "rev-list", "--max-count=1", "--format=%T%n%ct", "HEAD", "--")
        if done.returncode != 0:
            raise UsageError(_NO_COMMIT.format(repo))
        commit, tree, time = done.stdout.splitlines()
        return cls(commit.removeprefix("commit "), tree, int(time))


def require_clean(repo: Path, but_for: str = "") -> None:
    """Raise a UsageError if the working tree has changes: the root of a run is a commit.

    `but_for` may be untracked there: the baseline that --make-baseline has written.
    """
    status = git(repo, "status", "--porcelain", "--untracked-files=all", user_ignores=True)
    changes = [line for line in status.splitlines() if line != f"?? {but_for}"]
    if changes:
        raise UsageError(
            f"Root working tree must be clean to start a run (first change: {changes[0]}). "
            "Commit or stash local changes, then retry. Files that are not part of the code can be "
            "ignored or moved elsewhere."
        )
