"""The usage log of an evaluation or an expansion: one line for each answer of a model.

An evaluation that ends in order carries its usage in its outcome. If its process is lost, the lines
of the log are added up instead; the log of a worker on another machine is lost with it.
`llm.usage_log` defines the lines.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from treewright.kernel.storage import untrusted
from treewright.llm.usage import Usage
from treewright.llm.usage_log import Answer, append, read, summed
from treewright.tree.records.layout import USAGE

__all__ = [
    "Answer",
    "add",
    "expansions",
    "of_expansion",
    "spent",
    "summed",
    "total",
]

_EXPANSION = re.compile(r"usage_([0-9]+)\.jsonl")


def add(directory: Path, usage: Usage, name: str = USAGE, *, role: str = "") -> None:
    """Append the usage of one answer, unless it is zero."""
    if usage == Usage():
        return
    answer = Answer.of(usage, role)
    with contextlib.suppress(untrusted.NotPlain):  # the outcome has the usage too
        append(directory / name, answer)


def of_expansion(depth: int) -> str:
    """Return the file name of an expansion's log; each expansion has a separate one."""
    return f"usage_{depth}.jsonl"


def expansions(directory: Path) -> list[int]:
    """Return the numbers of the expansions with a log in a directory."""
    found = (_EXPANSION.fullmatch(path.name) for path in directory.glob("usage_*.jsonl"))
    return sorted(int(match[1]) for match in found if match is not None)


def total(directory: Path, name: str = USAGE) -> Usage:
    """Return the sum of a log."""
    return summed(_answers(directory, name))[0]


def spent(directory: Path) -> tuple[Usage, dict[str, Usage]]:
    """Return the sum of an evaluation's log, and the sum of each role."""
    return summed(_answers(directory, USAGE))


def _answers(directory: Path, name: str) -> Iterator[Answer]:
    with contextlib.suppress(OSError):
        yield from read(directory / name, untrusted.LARGEST_TEXT)
