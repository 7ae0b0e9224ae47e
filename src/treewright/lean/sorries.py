"""Finding every `sorry` with its goal, and putting a proof in the place of exactly one.

Finding is Lean's work: a `sorry` counts because elaboration met it, so comments, strings and
quotations never do, and one behind a macro is found where the macro stands. Positions are byte
offsets, and replacing leaves every other byte of the file as it was.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.lean.project.workspace import written_imports
from treewright.lean.session.answers import CheckResult, Diagnostic, Goal, ProofState
from treewright.lean.session.errors import DEFAULT_CHECK_SECONDS, LeanError
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.lemma_errors import unread_lemmas

_BY = re.compile(r"(?:^|\n)(?P<line>[^\n]*[^\n\w.]by)(?P<space>[ \t]+)$")
USUAL_INDENT = 2
_WIDEST_INDENT = 8
_SKIPPED_DIRECTORIES = frozenset({".lake", ".git", ".treewright", "build", "node_modules"})


@dataclass(frozen=True, slots=True)
class Sorry:
    """One `sorry`. `start` and `end` are bytes; `line` counts from 1, `column` from 0.

    It has several states when its text runs several times (`all_goals sorry`); a proof has to
    close them all. The states live in the session that found it.
    """

    start: int
    end: int
    line: int
    column: int
    declaration: str
    tactic: bool
    imports: tuple[str, ...]
    states: tuple[ProofState, ...]
    trouble: Diagnostic | None = None  # an error of the text that concerns its declaration

    @property
    def goals(self) -> tuple[Goal, ...]:
        """The goals of all its states."""
        return tuple(goal for state in self.states for goal in state.goals)

    @property
    def goal(self) -> Goal:
        """The first goal."""
        return self.states[0].goals[0]


@dataclass(frozen=True, slots=True)
class FileSorries:
    """The sorries of one file; `error`: why this Lean could not read it, or not to its end."""

    path: Path
    source: str
    sorries: tuple[Sorry, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    error: str = ""


def extract(
    session: HostSession,
    source: str,
    *,
    until: str = "",
    statements: bool = False,
    timeout: float = DEFAULT_CHECK_SECONDS,
) -> tuple[Sorry, ...]:
    """Every `sorry` of a text, in order of position; all up to a declaration's, with `until`.

    With `statements` a host may leave out proofs of theorems without a `sorry`.
    """
    result = session.check(
        source, sorries=True, until=until, statements=statements, timeout=timeout
    )
    if not isinstance(result, CheckResult):
        raise LeanError(f"the text could not be elaborated: {result}")
    return from_check(source, result)


def from_check(source: str, result: CheckResult) -> tuple[Sorry, ...]:
    """Return the sorries of a text that was checked with `sorries=True`."""
    data = source.encode()
    imports = written_imports(source) or ("Init",)
    found = []
    for place in sorted(result.sorries, key=lambda p: (p.start, p.end)):
        start, end = _offset(data, place.start), _offset(data, place.end)
        before = data[:start]
        line_start = before.rfind(b"\n") + 1
        found.append(
            Sorry(
                start,
                end,
                before.count(b"\n") + 1,
                len(before[line_start:].decode()),
                place.declaration,
                place.tactic,
                imports,
                place.states,
                place.trouble,
            )
        )
    return tuple(found)


def _offset(data: bytes, position: int) -> int:
    """A position in the text as Lean reads it (CRLF as LF), as an offset into the file."""
    offset = 0
    for line in data.split(b"\r\n"):
        if position <= len(line):
            return offset + position
        position -= len(line) + 1
        offset += len(line) + 2
    return len(data)


def extract_file(session: HostSession, path: Path, *, timeout: float) -> FileSorries:
    """Return the sorries of a file. Raises UsageError if the file cannot be read."""
    try:
        source = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        return FileSorries(path, "", (), error="the file is not UTF-8")
    return extract_source(session, path, source, timeout=timeout)


def extract_source(session: HostSession, path: Path, source: str, *, timeout: float) -> FileSorries:
    """Return the sorries of a file from its text."""
    try:
        result = session.check(source, sorries=True, timeout=timeout)
    except TreewrightError as error:
        return FileSorries(path, source, (), error=str(error))
    if not isinstance(result, CheckResult):
        return FileSorries(path, source, (), error=f"could not be elaborated: {result}")
    unread = f"Lean did not read all of it: {result.stopped}" if result.stopped else ""
    lemmas = unread_lemmas(source, result.diagnostics)
    if lemmas and not unread:
        error = lemmas[0].error
        more = f" (and {len(lemmas) - 1} more)" if lemmas[1:] else ""
        unread = f"Lean did not read the lemma of line {error.line}{more}: {error.text}"
    return FileSorries(path, source, from_check(source, result), result.diagnostics, unread)


def extract_files(
    sessions: Callable[[], HostSession], paths: Iterable[Path], *, timeout: float
) -> Iterator[FileSorries]:
    """Yield the sorries of each file; a lost session is replaced.

    The states of a file live until the next file is requested.
    """
    session = None
    try:
        for path in paths:
            if session is None or not session.alive:
                session = sessions()
            found = extract_file(session, path, timeout=timeout)
            yield found
            if session.alive:
                session.free([state for sorry in found.sorries for state in sorry.states])
    finally:
        if session is not None:
            session.close()


def lean_files(root: Path) -> list[Path]:
    """Return a Lean file itself, or all of a directory in order, without build output."""
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise UsageError(f"there is no {root}")
    found = []
    for directory, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in _SKIPPED_DIRECTORIES)
        found += [Path(directory) / name for name in files if name.endswith(".lean")]
    return sorted(found)


def indentation(source: str, sorry: Sorry) -> int:
    """How far a block stands in, where the `sorry` is: as far as its own line, if it has one."""
    *above, line = source.encode()[: sorry.start].decode().split("\n")
    if line.strip():
        return USUAL_INDENT
    outer = next((x for x in reversed(above) if x.strip() and _margin(x) < len(line)), line)
    step = len(line) - _margin(outer)
    return step if 0 < step <= _WIDEST_INDENT else USUAL_INDENT


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" ·"))


def replace(source: str, sorry: Sorry, proof: str) -> str:
    """Return the text with a tactic script in the place of `sorry`; all other bytes stay.

    A script of several lines is laid out so that Lean reads it as one block in its place. After a
    `by` it begins on a new line.
    """
    data = source.encode()
    if data[sorry.start : sorry.end].strip() == b"":
        raise UsageError("the text is not the one this sorry was found in")
    newline = "\r\n" if b"\r\n" in data else "\n"
    lines = proof.strip("\n").splitlines() or [""]
    if not sorry.tactic:
        text = _block("(by ", lines, ")", sorry.column + len("(by "), newline)
    elif len(lines) == 1:
        text = lines[0].strip()
    elif begun := _last_on_its_line(data, sorry):
        column = _margin(begun["line"]) + USUAL_INDENT
        text = newline + " " * column + _block("", lines, "", column, newline)
        start = sorry.start - len(begun["space"])
        return (data[:start] + text.encode() + data[sorry.end :]).decode()
    elif _begins_block(data[: sorry.start].decode()):
        text = _block("", lines, "", sorry.column, newline)
    else:
        text = _block("(", lines, ")", sorry.column + 1, newline)
    return (data[: sorry.start] + text.encode() + data[sorry.end :]).decode()


def _last_on_its_line(data: bytes, sorry: Sorry) -> re.Match[str] | None:
    """Return the line up to a `by` if its block ends with the line: a block may go below."""
    begun = _BY.search(data[: sorry.start].decode())
    rest, *below = data[sorry.end :].decode().splitlines() or [""]
    if begun is None or not (rest.strip() == "" or rest.lstrip().startswith("--")):
        return None
    following = next((line for line in below if line.strip()), "")
    return begun if _margin(following) <= _margin(begun["line"]) else None


def _begins_block(before: str) -> bool:
    """Whether a tactic block starts right here, so that further lines may follow."""
    line = before.rsplit("\n", 1)[-1]
    return re.search(r"(^|\bby|·|=>)\s*$", line) is not None


def _block(opening: str, lines: list[str], closing: str, column: int, newline: str) -> str:
    rest = [f"{' ' * column}{line}" if line.strip() else "" for line in lines[1:]]
    return newline.join([f"{opening}{lines[0]}", *rest]) + closing


def patch_of(name: str, before: str, after: str) -> str:
    """The change of a file as a unified diff, for `git apply` and `patch -p1`."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    # One without a newline at the end of its file is marked as `diff` does.
    ended = (x if x.endswith("\n") else f"{x}\n\\ No newline at end of file\n" for x in lines)
    return "".join(ended)


def with_sorry_at(source: str, line: int, column: int | None = None) -> tuple[str, int]:
    """The text with a `sorry` at a place, and the byte where it begins.

    Lines and columns count from 1. Without a column it is the first one of the line that is not
    blank, or on a blank line, where the last line above begins.
    """
    lines = source.replace("\r\n", "\n").split("\n")
    if not 1 <= line <= len(lines):
        raise UsageError(f"the text has no line {line}: it has {len(lines)}")
    if column is None:
        shown = lines[line - 1]
        above = next((each for each in reversed(lines[: line - 1]) if each.strip()), "")
        margin = _spaces(shown if shown.strip() else above)
    else:
        margin = column - 1
    here = lines[line - 1].ljust(margin)
    if margin < 0 or (column is not None and margin > len(lines[line - 1]) + 1):
        raise UsageError(f"line {line} has no column {column}: it has {len(lines[line - 1])}")
    head = lines[: line - 1]
    rest = lines[line:]
    while rest and (not rest[0].strip() or _spaces(rest[0]) >= max(margin, 1)):
        rest.pop(0)
    before = "\n".join([*head, here[:margin]])
    return "\n".join([before + "sorry", "", *rest]), len(before.encode())


def _spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
