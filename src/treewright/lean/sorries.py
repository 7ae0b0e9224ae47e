"""Finding every `sorry` with its goal, and putting a proof in the place of exactly one.

Finding is Lean's work: a `sorry` counts because elaboration met it, so comments, strings and
quotations never do, and one behind a macro is found where the macro stands. Positions are byte
offsets, and replacing leaves every other byte of the file as it was.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.lean.session import DEFAULT_CHECK_SECONDS, LeanError, LeanSession
from treewright.lean.types import CheckResult, Diagnostic, Goal, ProofState

_IMPORT = re.compile(r"^\s*(?:public\s+)?(?:meta\s+)?import\s+(?:all\s+)?([\w.«»]+)", re.MULTILINE)
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

    @property
    def goals(self) -> tuple[Goal, ...]:
        return tuple(goal for state in self.states for goal in state.goals)

    @property
    def goal(self) -> Goal:
        return self.states[0].goals[0]


@dataclass(frozen=True, slots=True)
class FileSorries:
    """The sorries of one file, or why it could not be read by this Lean."""

    path: Path
    source: str
    sorries: tuple[Sorry, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    error: str = ""


def extract(
    session: LeanSession, source: str, *, timeout: float = DEFAULT_CHECK_SECONDS
) -> tuple[Sorry, ...]:
    """Every `sorry` of a text, in order of position."""
    result = session.check(source, sorries=True, timeout=timeout)
    if not isinstance(result, CheckResult):
        raise LeanError(f"the text could not be elaborated: {result}")
    return from_check(source, result)


def from_check(source: str, result: CheckResult) -> tuple[Sorry, ...]:
    data = source.encode()
    imports = tuple(_IMPORT.findall(source)) or ("Init",)
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


def extract_file(session: LeanSession, path: Path, *, timeout: float) -> FileSorries:
    try:
        source = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        return FileSorries(path, "", (), error="the file is not UTF-8")
    try:
        result = session.check(source, sorries=True, timeout=timeout)
    except TreewrightError as error:
        return FileSorries(path, source, (), error=str(error))
    if not isinstance(result, CheckResult):
        return FileSorries(path, source, (), error=f"could not be elaborated: {result}")
    return FileSorries(path, source, from_check(source, result), result.diagnostics)


def extract_project(
    session: LeanSession, root: Path, *, timeout: float = DEFAULT_CHECK_SECONDS
) -> Iterator[FileSorries]:
    """Every Lean file below `root`, build output left out, in order of path."""
    for path in lean_files(root):
        yield extract_file(session, path, timeout=timeout)


def lean_files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise UsageError(f"there is no {root}")
    found = []
    for directory, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in _SKIPPED_DIRECTORIES)
        found += [Path(directory) / name for name in files if name.endswith(".lean")]
    return sorted(found)


def replace(source: str, sorry: Sorry, proof: str) -> str:
    """The text with a tactic script in the place of `sorry`; nothing else changes.

    A script of several lines is laid out so that Lean reads it as one block where it stands.
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
    elif _begins_block(data[: sorry.start].decode()):
        text = _block("", lines, "", sorry.column, newline)
    else:
        text = _block("(", lines, ")", sorry.column + 1, newline)
    return (data[: sorry.start] + text.encode() + data[sorry.end :]).decode()


def _begins_block(before: str) -> bool:
    """Whether a tactic block starts right here, so that further lines may follow."""
    line = before.rsplit("\n", 1)[-1]
    return re.search(r"(^|\bby|·|=>)\s*$", line) is not None


def _block(opening: str, lines: list[str], closing: str, column: int, newline: str) -> str:
    rest = [f"{' ' * column}{line}" if line.strip() else "" for line in lines[1:]]
    return newline.join([f"{opening}{lines[0]}", *rest]) + closing
