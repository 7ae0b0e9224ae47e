"""A repository of an agent's own, for as long as it works in a worktree.

Worktrees share branches, tags, the stash and the configuration with the user's
repository. So while a command-line agent runs, the worktree's `.git` leads to a private
repository that borrows the objects and has copies of the refs. The agent can look at the
whole history, commit, stash and branch as it likes; none of it is anybody else's.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel import untrusted
from treewright.kernel.errors import LeaseLost
from treewright.tree.agents.base import AgentFailure
from treewright.tree.repository.git import GitError, attempt, git

_NAME = "treewright-private"
_LARGEST_POINTER = 1 << 16


@dataclass(slots=True)
class Seen:
    """What the agent did in its repository that is gone with it."""

    moved: bool = False


@contextlib.contextmanager
def private_repository(worktree: Path, base_commit: str) -> Iterator[Seen]:
    """While the block runs, git in `worktree` works on a private repository; the files are
    the same. Files that the agent staged although they are ignored stay staged."""
    seen = Seen()
    pointer = worktree / ".git"
    if not pointer.is_file():  # a repository of its own already
        yield seen
        return
    before = pointer.read_bytes()
    own = Path(git(worktree, "rev-parse", "--absolute-git-dir").rstrip("\n"))
    branch = attempt(worktree, "symbolic-ref", "-q", "HEAD").stdout.strip()
    private = own / _NAME
    _create(worktree, own, private, branch, base_commit)
    led_here = f"gitdir: {private}\n".encode()
    forced: list[str] = []
    still_ours = True
    try:
        _write(pointer, led_here)
        yield seen
        _require(pointer, led_here)
        seen.moved = _has_moved(worktree, branch, base_commit)
        forced = _ignored_but_staged(worktree)
    except LeaseLost:
        still_ours = False  # what is at this path now may be the next owner's
        raise
    finally:
        if still_ours:
            _write(pointer, before)
            untrusted.remove_tree(private)
    present = [path for path in forced if (worktree / path).is_file()]
    if present:
        git(worktree, "add", "--force", "--", *present, env={"GIT_LITERAL_PATHSPECS": "1"})


def _create(worktree: Path, own: Path, private: Path, branch: str, commit: str) -> None:
    common = own / git(worktree, "rev-parse", "--git-common-dir").rstrip("\n")
    kind = "sha256" if len(commit) == 64 else "sha1"
    refs = git(worktree, "for-each-ref", "--format=create %(refname) %(objectname)")
    untrusted.remove_tree(private)
    git(worktree, "init", "--quiet", "--bare", "--template=", f"--object-format={kind}",
        str(private))  # fmt: skip
    (private / "objects" / "info").mkdir(exist_ok=True)
    (private / "objects" / "info" / "alternates").write_text(f"{common / 'objects'}\n")
    with (private / "config").open("a", encoding="utf-8") as config:
        shown = str(common / "config").replace("\\", "\\\\").replace('"', '\\"')
        config.write(f'[include]\n\tpath = "{shown}"\n[core]\n\tbare = false\n')
    (private / "info").mkdir(exist_ok=True)
    for name in ("shallow", "info/exclude"):
        if (common / name).is_file():
            shutil.copyfile(common / name, private / name)
    if (own / "index").is_file():
        shutil.copy2(own / "index", private / "index")
    here = {"GIT_DIR": str(private)}
    git(worktree, "update-ref", "--stdin", stdin=refs, env=here)
    if branch:
        git(worktree, "symbolic-ref", "HEAD", branch, env=here)
    else:
        git(worktree, "update-ref", "--no-deref", "HEAD", commit, env=here)


def _write(pointer: Path, content: bytes) -> None:
    with untrusted.create(pointer) as file:
        file.write(content)


def _require(pointer: Path, content: bytes) -> None:
    with contextlib.suppress(OSError):
        if untrusted.read(pointer, _LARGEST_POINTER) == content:
            return
    raise AgentFailure("worktree_damaged", "the agent replaced or removed the worktree's .git")


def _has_moved(worktree: Path, branch: str, commit: str) -> bool:
    head = attempt(worktree, "rev-parse", "-q", "--verify", "HEAD").stdout.strip()
    now_on = attempt(worktree, "symbolic-ref", "-q", "HEAD").stdout.strip()
    return (head, now_on) != (commit, branch)


def _ignored_but_staged(worktree: Path) -> list[str]:
    listed = ("ls-files", "--cached", "--ignored", "--exclude-standard", "-z")
    try:
        return [path for path in git(worktree, *listed).split("\0") if path]
    except GitError:  # its index is no index any more; then nothing was staged
        return []
