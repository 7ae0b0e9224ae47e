"""The idea source `mutate`: single edits to literals of tunable files, without a model.

Every idea changes one token at one place of the node's own files, and is written as an ordinary
idea with a patch. K ideas cover K different places before any place gets a second try. Node and
seed decide the order of the places.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treewright.kernel.storage import atomic, untrusted
from treewright.tree.config import MutateIdeas
from treewright.tree.guard.protected_files import match_protected
from treewright.tree.ideas.idea_source import (
    GeneratorFailure,
    Idea,
    IdeaSourceError,
    NodeContext,
    Proposals,
)
from treewright.tree.ideas.idea_text import fence_for, key, patches
from treewright.tree.ideas.node_description import read_earlier_ideas
from treewright.tree.ideas.tunable_literals import Edit, Site, find_sites
from treewright.tree.repository.blocks import spans

_CONTEXT = 3
_NO_NEWLINE = b"\n\\ No newline at end of file\n"


_WILDCARDS = frozenset("*?[")


def replace_range(path: str, source: bytes, start: int, end: int, replacement: str) -> str:
    """Return the patch that replaces `source[start:end]`, a range within one line.

    Lines end with LF only, as for git, so CR is part of the line.
    """
    first = source.rfind(b"\n", 0, start) + 1
    newline = source.find(b"\n", end)
    last = len(source) if newline < 0 else newline + 1
    changed = source[first:start] + replacement.encode("utf-8") + source[end:last]
    before, after = _lines(source[:first]), _lines(source[last:])
    head, tail = before[-_CONTEXT:], after[:_CONTEXT]
    position = len(before) - len(head) + 1
    length = len(head) + 1 + len(tail)
    parts = [
        f"--- {_header('a/' + path)}\n+++ {_header('b/' + path)}\n".encode(),
        f"@@ -{position},{length} +{position},{length} @@\n".encode(),
        *(_marked(b" ", line) for line in head),
        _marked(b"-", source[first:last]),
        _marked(b"+", changed),
        *(_marked(b" ", line) for line in tail),
    ]
    return b"".join(parts).decode("utf-8")


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    whole = [line + b"\n" for line in lines[:-1]]
    return [*whole, lines[-1]] if lines[-1] else whole


def _marked(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + _NO_NEWLINE


def _header(name: str) -> str:
    """Return a file name in the form that git reads.

    A name with special characters is quoted. A tab ends a name with a blank, because the blank
    would end the name otherwise.
    """
    if any(character in '"\\' or not character.isprintable() for character in name):
        escaped = "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}"
            for byte in name.encode("utf-8", "surrogateescape")
        )
        return f'"{escaped}"'
    return f"{name}\t" if " " in name else name


@dataclass(frozen=True, slots=True)
class _Place:
    path: str
    source: bytes
    site: Site


class MutateSource:
    """The idea source `mutate`."""

    def __init__(self, config: MutateIdeas) -> None:
        self._config = config

    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        known = frozenset(taken)
        undone = frozenset(
            change
            for idea in read_earlier_ideas(context.context_ideas_dirs)
            for change in ((new, old) for old, new in _changes(idea.text))
        )
        places = self._places(context)
        proposals = Proposals()
        postponed: list[Idea] = []
        for place, edit in _spread(places, random.Random(f"{context.seed}:{context.node_id}")):  # noqa: S311
            if len(proposals.ideas) == context.wanted:
                break
            idea = _idea(place, edit)
            if key(idea.text) in known or not _stays_python(place, edit):
                continue
            # Undoing an accepted edit leads to a state that was measured before, so such
            # ideas come last.
            goes_back = not undone.isdisjoint(_changes(idea.text))
            (postponed if goes_back else proposals.ideas).append(idea)
        missing = context.wanted - len(proposals.ideas)
        proposals.ideas.extend(postponed[:missing])
        return proposals

    def _places(self, context: NodeContext) -> list[_Place]:
        """Return the places of all tunable files.

        Raises:
            GeneratorFailure: no file can be used. If some can, the others are logged.
        """
        paths = tunable_files(self._config, context.checkout, context.protected_paths)
        if not paths:
            raise GeneratorFailure(
                f"no tunable file matches {', '.join(self._config.files)} in node "
                f"{context.node_id}; check `files` of the mutate idea source"
            )
        places, problems = _read_places(self._config, context.checkout, paths)
        if len(problems) == len(paths):
            raise GeneratorFailure(f"no tunable file can be read as Python: {problems[0]}")
        places = _editable(places, context.editable_blocks)
        if problems:
            atomic.write_text(context.scratch / "mutate.log", "\n".join(problems) + "\n")
        return places


def _editable(places: list[_Place], editable_blocks: Sequence[str]) -> list[_Place]:
    """Return the places inside editable blocks; all places if there are no such blocks."""
    if not editable_blocks:
        return places
    return [
        place
        for place in places
        if place.path in editable_blocks
        and any(
            start <= place.site.start and place.site.end <= end
            for start, end in spans(place.source)
        )
    ]


def tunable_files(config: MutateIdeas, root: Path, protected: list[str]) -> list[str]:
    """Return the files that `files` names or matches, except protected files and links."""
    found: set[str] = set()
    for pattern in config.files:
        pure = PurePosixPath(pattern)
        if pure.is_absolute() or ".." in pure.parts:
            raise IdeaSourceError(f"tunable file {pattern!r} is not inside the repository")
        if _WILDCARDS & set(pattern):
            # A wildcard never means .git, .venv or the run directory below the root.
            matches = [
                path
                for path in root.glob(pattern)
                if not any(part.startswith(".") for part in path.relative_to(root).parts)
            ]
        else:
            matches = [root / pattern]
        found.update(p.relative_to(root).as_posix() for p in matches if _is_plain(p, root))
    return sorted(found.difference(match_protected(found, protected)))


def count_places(
    config: MutateIdeas, root: Path, editable_blocks: Sequence[str] = ()
) -> tuple[int, int]:
    """Return the number of tunable files, and of places that may be edited in them."""
    paths = tunable_files(config, root, [])
    places, problems = _read_places(config, root, paths)
    return len(paths) - len(problems), len(_editable(places, editable_blocks))


def _read_places(
    config: MutateIdeas, root: Path, paths: list[str]
) -> tuple[list[_Place], list[str]]:
    places: list[_Place] = []
    problems: list[str] = []
    for path in paths:
        try:
            source = untrusted.read(root / path, untrusted.LARGEST_TEXT)
            sites = find_sites(source, config.factors, config.options)
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            problems.append(f"{path}: {error}")
            continue
        places.extend(_Place(path, source, site) for site in sites)
    return places, problems


def _spread(places: list[_Place], generator: random.Random) -> Iterator[tuple[_Place, Edit]]:
    """Yield every edit once: a first edit of every place, then a second of each, and so on.

    Values with a name go first, because a name says that a value matters.
    """
    queues = [(place, list(place.site.edits)) for place in places]
    generator.shuffle(queues)
    queues.sort(key=lambda queue: not queue[0].site.whole)
    for _, edits in queues:
        generator.shuffle(edits)
    while queues:
        for place, edits in queues:
            yield place, edits.pop()
        queues = [(place, edits) for place, edits in queues if edits]


def _stays_python(place: _Place, edit: Edit) -> bool:
    site = place.site
    edited = place.source[: site.start] + edit.replacement.encode() + place.source[site.end :]
    try:
        ast.parse(edited)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _idea(place: _Place, edit: Edit) -> Idea:
    site = place.site
    patch = replace_range(place.path, place.source, site.start, site.end, edit.replacement)
    fence = fence_for(patch)
    where = f"{site.name} in {place.path}"
    if not site.whole:  # a value inside an expression has no name of its own
        inside = site.name or site.scope
        where = f"{place.path}, line {site.line}" + (f", in {inside}" if inside else "")
    text = (
        f"# {where}: {site.token} -> {edit.replacement}\n\n"
        f"Line {site.line} of `{place.path}` has `{site.token}`. "
        f"Try `{edit.replacement}` ({edit.reason}) and change no other value: "
        "then every difference in the sweep is the effect of this value.\n\n"
        f"{fence}diff\n{patch}{fence}\n"
    )
    return Idea(text, origin=f"mutate:{place.path}:{site.line}")


def _changes(text: str) -> set[tuple[str, str]]:
    """Return pairs of the old and the new line of the single-line patches in an idea."""
    found: set[tuple[str, str]] = set()
    for patch in patches(text):
        lines = [line.rstrip() for line in patch.split("\n")]
        body = lines[3:]  # below the two file headers and the hunk's
        old = [line[1:] for line in body if line.startswith("-")]
        new = [line[1:] for line in body if line.startswith("+")]
        if len(old) == len(new) == 1:
            found.add((f"{lines[0]}\n{old[0]}", f"{lines[0]}\n{new[0]}"))
    return found


def _is_plain(path: Path, root: Path) -> bool:
    """Return whether a path is a regular file that no symbolic link leads to."""
    steps = [path, *path.parents]
    return path.is_file() and not any(step.is_symlink() for step in steps[: steps.index(root)])
