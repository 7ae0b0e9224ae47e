"""What a banned idea looks like: regular expressions, matched in time that grows with the text.

Python's own matcher tries one way after the other, and a short pattern such as `(a+)+$` has more
ways than anybody can wait for; a run must not hang by one. Here all ways are followed at once. The
price is what needs to look back or ahead: such patterns are refused. Each single character
is left to Python's matcher, so what a class or an escape means is the same in both.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field

MOST_CHARACTERS = 1000
_MOST_STATES = 2000
_DEEPEST = 50
_MOST_REMEMBERED = 50_000
"""States, in all steps of a pattern that are remembered."""
_TOKEN = re.compile(
    r"""
    \\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|0[0-7]{0,2}|[1-3][0-7]{2}|.)
    | \[\^?\]?(?:\\.|[^\]\\])*\]
    | (?:[*+?]|\{(?!\})\d*(?:,\d*)?\})[?+]?
    | \(\?:|\(\?P<\w+>|\(\?|.
    """,
    re.VERBOSE | re.DOTALL,
)
_REPEAT = re.compile(r"([*+?])|\{(\d*)(,?)(\d*)\}")
_PLACES = ("^", "$", r"\A", r"\b", r"\B", r"\Z", r"\z")

_Test = Callable[[str, int], bool]


class PatternError(ValueError):
    """Why a pattern cannot be used."""


@dataclass(slots=True)
class _State:
    """`test` is None where nothing is asked; one that `takes` goes on to the next character."""

    after: list[int]
    test: _Test | None = None
    takes: bool = False


@dataclass(frozen=True, slots=True)
class _Leaf:
    source: str


@dataclass(frozen=True, slots=True)
class _Repeat:
    what: _Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class _Group:
    """Alternatives, each a sequence."""

    ways: list[list[_Node]]


_Node = _Leaf | _Repeat | _Group


@functools.lru_cache(maxsize=256)
def pattern(source: str) -> Pattern:
    """The pattern of that source; raises `PatternError`."""
    if len(source) > MOST_CHARACTERS:
        raise PatternError(f"the pattern has more than {MOST_CHARACTERS} characters")
    try:
        whole = re.compile(source, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"{source!r} is no regular expression: {error}") from None
    tree = _Parser(source).parse()
    if all(isinstance(part, _Leaf) for way in tree.ways for part in way) and len(tree.ways) == 1:
        return Pattern([], 0, whole)  # there is one way only
    states = [_State([])]
    return Pattern(states, _build(states, tree, 0), None)


@dataclass(slots=True)
class Pattern:
    """States of which any number hold at a time; 0 is the end."""

    _states: list[_State]
    _start: int
    _plain: re.Pattern[str] | None
    _steps: dict[tuple[frozenset[int], str], frozenset[int]] = field(default_factory=dict)
    _remembered: int = 0

    def is_in(self, text: str) -> bool:
        if self._plain is not None:
            return self._plain.search(text) is not None
        asks = any(state.test is not None and not state.takes for state in self._states)
        here: frozenset[int] = frozenset()
        for place, character in enumerate(text):
            known = None if asks else self._steps.get((here, character))
            if known is None:
                reached = self._reached(here, text, place)
                if 0 in reached:
                    return True
                known = self._taken(reached, text, place)
                if not asks:
                    self._remember(here, character, known)
            here = known
        return 0 in self._reached(here, text, len(text))

    def _remember(self, here: frozenset[int], character: str, then: frozenset[int]) -> None:
        if self._remembered >= _MOST_REMEMBERED:
            self._steps.clear()
            self._remembered = 0
        self._steps[here, character] = then
        self._remembered += len(then) + 1

    def _reached(self, here: frozenset[int], text: str, place: int) -> set[int]:
        """The states that hold before a place, with those of a match that begins there."""
        found: set[int] = set()
        waiting = [self._start, *here]
        while waiting:
            number = waiting.pop()
            if number in found:
                continue
            found.add(number)
            state = self._states[number]
            if not state.takes and (state.test is None or state.test(text, place)):
                waiting.extend(state.after)
        return found

    def _taken(self, reached: set[int], text: str, place: int) -> frozenset[int]:
        states = (self._states[number] for number in reached)
        return frozenset(
            state.after[0]
            for state in states
            if state.takes and state.test is not None and state.test(text, place)
        )


def _build(states: list[_State], node: _Node, then: int) -> int:
    """Adds the states of a node before those of what follows it; where it begins."""
    if len(states) > _MOST_STATES:
        raise PatternError("the pattern repeats too much; write it with smaller counts")
    if isinstance(node, _Leaf):
        one = re.compile(node.source, re.IGNORECASE)
        states.append(
            _State([then], lambda t, i: one.match(t, i) is not None, node.source not in _PLACES)
        )
    elif isinstance(node, _Group):
        begins = []
        for way in node.ways:
            begin = then
            for part in reversed(way):
                begin = _build(states, part, begin)
            begins.append(begin)
        states.append(_State(begins))
    else:
        return _build_repeat(states, node, then)
    return len(states) - 1


def _build_repeat(states: list[_State], node: _Repeat, then: int) -> int:
    if node.most is None:
        states.append(_State([then]))
        begin = len(states) - 1
        states[begin].after.append(_build(states, node.what, begin))
    else:
        begin = then
        for _ in range(node.most - node.least):
            states.append(_State([then, _build(states, node.what, begin)]))
            begin = len(states) - 1
    for _ in range(node.least):
        begin = _build(states, node.what, begin)
    return begin


class _Parser:
    """Takes apart what Python has found to be a regular expression."""

    def __init__(self, source: str) -> None:
        self._pieces = _TOKEN.findall(source)
        self._next = 0
        self._depth = 0

    def parse(self) -> _Group:
        """Up to the end, or to the bracket that closes."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternError("the pattern has too many brackets in brackets")
        ways: list[list[_Node]] = [[]]
        while self._next < len(self._pieces):
            piece = self._pieces[self._next]
            self._next += 1
            if piece == ")":
                break
            if piece == "|":
                ways.append([])
            elif repeat := _repeat(piece):
                ways[-1].append(_Repeat(ways[-1].pop(), *repeat))
            else:
                ways[-1].append(self._one(piece))
        self._depth -= 1
        return _Group(ways)

    def _one(self, piece: str) -> _Node:
        if piece == "(?":
            raise PatternError(
                "of groups that begin with (? a pattern can have only (?:...) and (?P<name>...)"
            )
        if piece.startswith("("):
            return self.parse()
        if piece[0] == "\\" and piece[1:].isdecimal() and piece[1] != "0" and len(piece) < 4:
            raise PatternError(f"a pattern cannot refer to a group: {piece}")
        is_special = len(piece) > 1 or piece in "^$."
        return _Leaf(piece if is_special else re.escape(piece))


def _repeat(piece: str) -> tuple[int, int | None] | None:
    """How often at least and at most, of a piece that says so. A lazy repeat matches where an
    eager one does."""
    found = _REPEAT.match(piece)
    if found is None:
        return None
    sign, least, comma, most = found.groups()
    if piece[found.end() :] == "+":
        raise PatternError(f"a repeat that gives nothing back cannot be used: {piece}")
    if sign:
        return (1 if sign == "+" else 0), (1 if sign == "?" else None)
    low = int(least or 0)
    return low, (int(most) if most else None) if comma else low
