"""What agents have spent so far, on disk before anybody can be killed over it.

A line per answer, in the directory of the evaluation or the expansion. Whoever finds the
directory of work that was lost adds the lines up; work that ends in order carries its
usage in its outcome, and the file goes with the next attempt. Work on another machine tells each
answer to whom it works for as well (`telling`): its directory may be lost with it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path

import msgspec

from treewright.kernel import untrusted
from treewright.llm.usage import Usage, sane_usage

NAME = "usage.jsonl"
_EXPANSION = re.compile(r"usage_([0-9]+)\.jsonl")


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one answer cost, and who asked; lines of earlier versions do not say who."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0
    role: str = ""

    @property
    def usage(self) -> Usage:
        return sane_usage(
            Usage(self.prompt_tokens, self.completion_tokens, self.cost_usd, self.unpriced_tokens)
        )


_also: ContextVar[Callable[[Answer], None] | None] = ContextVar("_also", default=None)


@contextlib.contextmanager
def telling(listener: Callable[[Answer], None]) -> Iterator[None]:
    """Within the block, and in its thread, a listener is told of every answer too."""
    before = _also.set(listener)
    try:
        yield
    finally:
        _also.reset(before)


def add(directory: Path, usage: Usage, name: str = NAME, *, role: str = "") -> None:
    """Appends one answer's usage. Survives this process, not a power cut: a sync for each
    answer would cost more than the answer may be worth knowing."""
    if usage == Usage():
        return
    answer = Answer(**msgspec.structs.asdict(usage), role=role)
    if (listener := _also.get()) is not None:
        listener(answer)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(directory / name, flags, 0o644)
    except OSError:
        return  # something else has the name; the outcome will say what was spent
    try:
        os.write(fd, msgspec.json.encode(answer) + b"\n")
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
    return sum((answer.usage for answer in _answers(directory, name)), Usage())


def spent(directory: Path) -> tuple[Usage, dict[str, Usage]]:
    """The sum, and the part of each role."""
    return summed(_answers(directory, NAME))


def summed(answers: Iterable[Answer]) -> tuple[Usage, dict[str, Usage]]:
    usage, roles = Usage(), dict[str, Usage]()
    for answer in answers:
        usage += answer.usage
        if answer.role:
            roles[answer.role] = roles.get(answer.role, Usage()) + answer.usage
    return usage, roles


def _answers(directory: Path, name: str) -> Iterator[Answer]:
    try:
        data = untrusted.read(directory / name, untrusted.LARGEST_TEXT)
    except OSError:
        return
    for line in data.splitlines():
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            yield msgspec.json.decode(line, type=Answer)
