"""What agents have spent so far, in the directory of the evaluation or the expansion.

Whoever finds the directory of work that was lost adds the lines up; work that ends in order carries
its usage in its outcome, and the file goes with the next attempt. Work on another machine tells
each answer to whom it works for as well (`telling`): its directory may be lost with it. What a
line is, `llm.usage_log` knows.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

from treewright.kernel.storage import untrusted
from treewright.llm.usage import Usage
from treewright.llm.usage_log import Answer, append, read, summed
from treewright.tree.records.layout import USAGE

__all__ = ["Answer", "add", "expansions", "of_expansion", "spent", "summed", "telling", "total"]

_EXPANSION = re.compile(r"usage_([0-9]+)\.jsonl")
_also: ContextVar[Callable[[Answer], None] | None] = ContextVar("_also", default=None)


@contextlib.contextmanager
def telling(listener: Callable[[Answer], None]) -> Iterator[None]:
    """Within the block, and in its thread, a listener is told of every answer too."""
    before = _also.set(listener)
    try:
        yield
    finally:
        _also.reset(before)


def add(directory: Path, usage: Usage, name: str = USAGE, *, role: str = "") -> None:
    """Appends one answer's usage, if there is any."""
    if usage == Usage():
        return
    answer = Answer.of(usage, role)
    if (listener := _also.get()) is not None:
        listener(answer)
    with contextlib.suppress(untrusted.NotPlain):  # the outcome will say what was spent
        append(directory / name, answer)


def of_expansion(depth: int) -> str:
    """The file of an expansion; one for each round, so that none is counted in another."""
    return f"usage_{depth}.jsonl"


def expansions(directory: Path) -> list[int]:
    """The expansions that have a file there."""
    found = (_EXPANSION.fullmatch(path.name) for path in directory.glob("usage_*.jsonl"))
    return sorted(int(match[1]) for match in found if match is not None)


def total(directory: Path, name: str = USAGE) -> Usage:
    """The sum of what is written there."""
    return summed(_answers(directory, name))[0]


def spent(directory: Path) -> tuple[Usage, dict[str, Usage]]:
    """The sum, and the part of each role."""
    return summed(_answers(directory, USAGE))


def _answers(directory: Path, name: str) -> Iterator[Answer]:
    with contextlib.suppress(OSError):
        yield from read(directory / name, untrusted.LARGEST_TEXT)
