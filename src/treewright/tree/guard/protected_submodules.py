"""Protected submodules, after commands have run: are their files still those of their commits?

Whoever fetches a submodule does it in the candidate's worktree, where its code can write to the
submodule's repository, its index and `.gitmodules`: none of them is asked. What is believed are
objects, wherever they lie, that are what their names say.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from treewright.tree.repository import objects, private_repository, refs
from treewright.tree.repository.git import NO_FETCHING, GitError, git
from treewright.tree.repository.listing import Listing, read_listing

IsThere = Callable[[Path, Listing, str, Mapping[str, str]], bool]
"""Whether a directory has the files of a commit, for which git is given variables."""


def changed(
    repo: Path, worktree: Path, submodules: Mapping[str, str], is_there: IsThere
) -> set[str]:
    """Those of the submodules (path -> commit) whose files are not the commit's. One that nobody
    has fetched is an empty directory."""
    return {
        path
        for path, commit in submodules.items()
        if not _is_untouched(repo, worktree, worktree / path, commit, is_there)
    }


def _is_untouched(repo: Path, worktree: Path, place: Path, commit: str, is_there: IsThere) -> bool:
    try:
        if place.is_symlink() or place.resolve(
            strict=True
        ) != worktree.resolve() / place.relative_to(worktree):
            return False
        if not os.listdir(place):  # noqa: PTH208
            return True
        lent = [path for path in _stores(repo, worktree, place) if (path / "pack").is_dir()]
        env = {**NO_FETCHING, "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(map(str, lent))}
        found = _listing(repo, commit, env)
    except (OSError, GitError, ValueError, RecursionError):
        return False
    if not is_there(place, found, commit, env):
        return False
    return all(
        _is_untouched(repo, worktree, place / inner, found.entries[inner][1], is_there)
        for inner in found.submodules
    )


def _listing(repo: Path, commit: str, env: Mapping[str, str]) -> Listing:
    """A GitError if these are not the objects of that name."""
    text = git(repo, "cat-file", "commit", commit, env=env)
    tree = text.partition("\n")[0].removeprefix("tree ")
    found = Listing.of(read_listing(git(repo, "ls-tree", "-r", "-z", commit, env=env)))
    is_it = objects.commit_name(text.encode("utf-8", "surrogateescape"), len(commit)) == commit
    if not is_it or objects.tree_name(found.entries, len(commit)) != tree:
        raise GitError(f"{commit} is not what its name says")
    return found


def _stores(repo: Path, worktree: Path, place: Path) -> Iterator[Path]:
    """Where the objects of submodules may lie."""
    own, _ = refs.git_directories(worktree)
    for modules in (refs.git_directories(repo)[1] / "modules", private_repository.modules(own)):
        for directory, inside, _ in os.walk(modules):
            if "objects" in inside:
                yield Path(directory).resolve() / "objects"
                inside[:] = [name for name in inside if name == "modules"]
    if os.path.lexists(place / ".git"):
        yield refs.git_directories(place)[1].resolve() / "objects"
