"""What agents have spent so far, on disk before anybody can be killed over it.

A line per answer, in the directory of the evaluation or the expansion. Whoever finds the
directory of work that was lost adds the lines up; work that ends in order carries its
usage in its outcome, and the file goes with the next attempt.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from treewright.kernel import untrusted
from treewright.llm.usage import Usage, sane_usage

NAME = "usage.jsonl"
_EXPANSION = re.compile(r"usage_([0-9]+)\.jsonl")


def add(directory: Path, usage: Usage, name: str = NAME) -> None:
    """Appends one answer's usage. Survives this process, not a power cut: a sync for each
    answer would cost more than the answer may be worth knowing."""
    if usage == Usage():
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(directory / name, flags, 0o644)
    except OSError:
        return  # something else has the name; the outcome will say what was spent
    try:
        os.write(fd, msgspec.json.encode(usage) + b"\n")
    finally:
        os.close(fd)


def of_expansion(depth: int) -> str:
    """The file of an expansion; one for each round, so that none is counted in another."""
    return f"usage_{depth}.jsonl"


def expansions(directory: Path) -> list[int]:
    """The expansions that have a file there."""
    found = (_EXPANSION.fullmatch(path.name) for path in directory.glob("usage_*.jsonl"))
    return sorted(int(match[1]) for match in found if match is not None)


def total(directory: Path, name: str = NAME) -> Usage:
    """The sum of what is written there; lines that cannot be read count for nothing."""
    try:
        data = untrusted.read(directory / name, untrusted.LARGEST_TEXT)
    except OSError:
        return Usage()
    spent = Usage()
    for line in data.splitlines():
        try:
            spent += sane_usage(msgspec.json.decode(line, type=Usage))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return spent
