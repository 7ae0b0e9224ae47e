"""Digests of code that do not depend on its formatting.

A digest covers the changes of a commit against the root commit of a run. Python files count by
their syntax tree, so that spaces, quotes, line breaks and comments make no difference; all other
files count byte for byte.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from treewright.tree.repository import seeds, staging
from treewright.tree.repository.git import GitError, git
from treewright.tree.repository.staging import Change

_SUFFIXES = (".py", ".pyi")
_PLAIN_MODES = ("100644", "100755")
_LARGEST_SOURCE = 1 << 20
_CANNOT_PARSE = (SyntaxError, ValueError, RecursionError, MemoryError)


UNCHANGED = hashlib.sha256().hexdigest()
"""The digest of the root commit."""


def code_digests(repo: Path, root: str, commits: Sequence[str]) -> list[str]:
    """Return one digest for each commit; equal digests mean equal code after formatting."""
    return _digests(repo, root, commits, [python_key])[0]


def only_seeds_differ(repo: Path, root: str, parent: str, commit: str) -> bool:
    """Return whether a commit differs from its parent, or from the root, only in seeds.

    Formatting, comments and docstrings do not count. A change of a file that is not Python, or
    that cannot be parsed, is more than a change of seeds.
    """
    views = [_key_without_docstrings, _key_without_seeds]
    (before, code), (before_seedless, seedless) = _digests(repo, root, [parent, commit], views)
    return (code != before and seedless == before_seedless) or (
        code != UNCHANGED and seedless == UNCHANGED
    )


def python_key(source: bytes) -> str:
    """Return a digest of a Python file's syntax; of its bytes if it has none."""
    return _key(source)


def _key_without_docstrings(source: bytes) -> str:
    return _key(source, seeds.remove_docstrings)


def _key_without_seeds(source: bytes) -> str:
    return _key(source, seeds.remove_docstrings, seeds.remove_seeds)


def _key(source: bytes, *simplify: Callable[[ast.AST], None]) -> str:
    try:
        tree = ast.parse(source)
        for each in simplify:
            each(tree)
        data = "\n".join(_nodes(tree)).encode("utf-8", "surrogatepass")
    except _CANNOT_PARSE:
        data = source
    return hashlib.sha256(data).hexdigest()


def _digests(
    repo: Path, root: str, commits: Sequence[str], views: Sequence[Callable[[bytes], str]]
) -> list[list[str]]:
    """Return a digest for each commit, once for each way to look at a Python file."""
    asked = _lines([f"{commit}^{{tree}}" for commit in (root, *commits)])
    before, *after = git(repo, "cat-file", "--batch-check=%(objectname)", stdin=asked).splitlines()
    there = [(before, tree) for tree in after]
    both = staging.differences(repo, [*there, *((tree, before) for tree in after)])
    of_commits, of_root = both[: len(commits)], both[len(commits) :]
    entries = [{c.path: c.entry for c in changes if c.entry} for changes in of_root]
    blobs = {
        entry[1]
        for changes in both
        for change in changes
        if (entry := change.entry) and _is_python(change)
    }
    sources = dict(_read(repo, sorted(blobs)))
    found: list[list[str]] = []
    for view in views:
        keys = {name: view(data) for name, data in sources.items()}
        pairs = zip(of_commits, entries, strict=True)
        found.append([_digest(changes, old, keys) for changes, old in pairs])
    return found


def _nodes(value: object) -> Iterator[str]:
    """Yield what `ast.dump` writes, without the empty fields, which differ between versions of
    Python."""
    if isinstance(value, ast.AST):
        yield type(value).__name__
        for name, inside in ast.iter_fields(value):
            if inside not in (None, []) or isinstance(value, ast.Constant):
                yield name
                yield from _nodes(inside)
        yield ")"
    elif isinstance(value, list):
        yield "["
        for each in value:
            yield from _nodes(each)
        yield "]"
    else:
        yield repr(value)


def _digest(
    changes: Sequence[Change], before: dict[str, tuple[str, str]], keys: dict[str, str]
) -> str:
    digest = hashlib.sha256()
    for change in sorted(changes, key=lambda each: each.path):
        facts = _facts(change.entry, keys)
        if facts != _facts(before.get(change.path), keys):
            digest.update(f"{change.path}\0{facts}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _facts(entry: tuple[str, str] | None, keys: dict[str, str]) -> str:
    return "gone" if entry is None else f"{entry[0]} {keys.get(entry[1], entry[1])}"


def _is_python(change: Change) -> bool:
    is_plain = change.entry is not None and change.entry[0] in _PLAIN_MODES
    return is_plain and change.path.endswith(_SUFFIXES)


def _read(repo: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the blobs that are small enough to be code written by hand."""
    if not names:
        return
    sizes = git(repo, "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=_lines(names))
    small = [
        name
        for name, _, size in (line.partition(" ") for line in sizes.splitlines())
        if size.isdecimal() and int(size) <= _LARGEST_SOURCE
    ]
    said = git(repo, "cat-file", "--batch", stdin=_lines(small)) if small else ""
    rest = said.encode("utf-8", "surrogateescape")
    for name in small:
        head, _, rest = rest.partition(b"\n")
        found, kind, size = head.split(b" ")
        if (found.decode(), kind) != (name, b"blob"):
            raise GitError(f"git cat-file in {repo} did not answer what it was asked")
        yield name, rest[: int(size)]
        rest = rest[int(size) + 1 :]


def _lines(names: Sequence[str]) -> str:
    return "".join(f"{name}\n" for name in names)
