"""A reader of a small fragment of Lean terms, in which the scope of every binder is certain.

Any other text raises `UnsupportedTerm`; the reader never guesses. Bound variables become `#0`,
`#1`, … by nesting. No Lean text contains such names, so free names stay distinct from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LETTER = "A-Za-z_α-κμ-ωΑ-ΟΡΤ-Ωℕℤℚℝℂ"  # not λ, Π, Σ: they bind
_IDENT = rf"[{_LETTER}][{_LETTER}0-9'₀-₉]*"
_TOKEN = re.compile(
    rf"(?P<space>\s+)|(?P<ident>{_IDENT}(?:\.{_IDENT})*)|(?P<number>\d+(?![\w.]))"
    r"|(?P<symbol>=>|↦|\+\+|::|&&|\|\||==|!=|[(){},:∀∃λ→↔∧∨¬=≠<>≤≥+\-*/^%∣⟨⟩∘×∈∉⊆∪∩])"
)
# fmt: off
_KEYWORDS = frozenset({
    "if", "then", "else", "match", "with", "let", "in", "have", "show", "from", "by", "do", "at",
    "forall", "exists", "suffices", "calc", "where", "nomatch", "nofun", "assume", "haveI",
    "letI", "using", "deriving", "end", "open", "set_option", "unsafe", "termination_by",
    "decreasing_by", "return", "for", "unless", "try", "catch", "sorry",
})
# fmt: on
_OPENING = {"(": ")", "{": "}", "⟨": "⟩"}
_CLOSING = frozenset(_OPENING.values())
_AFTER_A_TERM = _CLOSING | {",", ":", "=>", "↦"}
_BINDERS = {"∀": (",",), "∃": (",",), "fun": ("=>", "↦"), "λ": ("=>", "↦")}
_RELATIONS = frozenset([">", "<", "≥", "≤", "∈", "∉", "≠", "⊆"])
_OPERATORS = frozenset(":=<>+-*/^%&|!")
_NAME = re.compile(rf"{_IDENT}\Z")
_LEVEL = re.compile(r"%[^\W\d][^\s]*")
_LEVEL_WORDS = frozenset({"max", "imax", "_"})
_LEVEL_TOKENS = frozenset("0123456789+")

Scope = Mapping[str, str]


class UnsupportedTerm(Exception):
    """The text is outside the fragment."""


def tokenize(text: str) -> list[str]:
    """Return the tokens of a term; names of universes get a mark."""
    found: list[str] = []
    position = 0
    touching = False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnsupportedTerm(text[position])
        position = match.end()
        if match.lastgroup != "space":
            if match[0] in _KEYWORDS:
                raise UnsupportedTerm(match[0])
            if touching and found[-1][-1] in _OPERATORS and match[0][0] in _OPERATORS:
                raise UnsupportedTerm(f"{found[-1]}{match[0]}")  # `:=`, `->`, `--`: another token
            found.append(match[0])
        touching = match.lastgroup != "space"
    return _mark_levels(found)


def _mark_levels(tokens: list[str]) -> list[str]:
    """Return the tokens with names of universes as `%u`, apart from variables of that name.

    The token after `Type` or `Sort` is a level, unless these are arguments themselves: `f Type u`
    applies `f` to two terms.
    """
    marked = list(tokens)
    for index, token in enumerate(tokens):
        if token not in ("Type", "Sort") or (index > 0 and _ends_a_term(tokens[index - 1])):
            continue
        following = tokens[index + 1 : index + 2]
        if following == ["("]:
            end = index + 2
            while end < len(tokens) and (_NAME.match(tokens[end]) or tokens[end] in _LEVEL_TOKENS):
                end += 1
            if tokens[end : end + 1] != [")"]:
                raise UnsupportedTerm("a level")
        else:
            end = index + 2
        for at in range(index + 1, min(end, len(tokens))):
            if _NAME.match(tokens[at]) and tokens[at] not in _LEVEL_WORDS | _BINDERS.keys():
                marked[at] = f"%{tokens[at]}"
    return marked


def _ends_a_term(token: str) -> bool:
    return token in _CLOSING or (token not in _BINDERS and (token[0].isalnum() or token[0] == "_"))


def number_levels(normal: str) -> str:
    """Return a normal form with universes numbered by their first occurrence."""
    numbers: dict[str, int] = {}
    return _LEVEL.sub(lambda m: f"%{numbers.setdefault(m[0], len(numbers))}", normal)


def normal_term(text: str) -> str:
    """Return the normal form of a term."""
    reader = _Reader(tokenize(text))
    normal = reader.term({})
    if reader.left:
        raise UnsupportedTerm(reader.left[0])
    return normal


def normal_goal(text: str) -> str:
    """Return the normal form of a goal as Lean displays it: hypotheses, then `⊢` and the target."""
    before, turnstile, target = text.partition("⊢")
    if "⊢" in target or not turnstile:
        raise UnsupportedTerm("⊢")
    hypotheses: list[_Binder] = []
    for line in _logical_lines(before):
        names, colon, kind = line.partition(":")
        words = names.split()
        if not colon or not words or kind.startswith("="):
            raise UnsupportedTerm(line)
        hypotheses += [_Binder(word, tokenize(kind)) for word in words]
    if any(
        not _NAME.match(h.name) or h.name in _KEYWORDS or h.name in _BINDERS for h in hypotheses
    ):
        raise UnsupportedTerm("name")
    scope: dict[str, str] = {}
    shown = _in_canonical_order(hypotheses, scope)
    reader = _Reader(tokenize(target))
    normal = reader.term(scope)
    if reader.left:
        raise UnsupportedTerm(reader.left[0])
    return "".join(f"{kind}\n" for kind in shown) + f"⊢ {normal}"


def _logical_lines(text: str) -> list[str]:
    """Return the lines of a text, each joined with its indented continuation lines."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.strip() or (not lines and line.startswith("case ")):
            continue
        if line[0].isspace() and lines:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
    return lines


@dataclass(frozen=True, slots=True)
class _Binder:
    name: str
    kind: list[str]


def _heads(tokens: Sequence[str]) -> set[str]:
    return {token.split(".", 1)[0] for token in tokens}


def _in_canonical_order(binders: Sequence[_Binder], scope: dict[str, str]) -> list[str]:
    """Return the types of binders in an order that does not depend on names.

    `scope` receives their numbers. Of the binders with all dependencies in scope, the one with the
    smallest type comes next. Binders with equal types keep their order.
    """
    names = [binder.name for binder in binders if binder.name != "_"]
    if len(set(names)) != len(names) or any(name in scope for name in names):
        raise UnsupportedTerm("a name is bound twice")
    for index, binder in enumerate(binders):
        if _heads(binder.kind) & {other.name for other in binders[index:]} - {"_"}:
            raise UnsupportedTerm("a type mentions a name that comes later")
    own = set(names)
    waiting = list(binders)
    shown: list[str] = []
    while waiting:
        ready = [b for b in waiting if not (_heads(b.kind) & own - scope.keys())]
        texts = [_whole(b.kind, scope) for b in ready]
        chosen = min(range(len(ready)), key=lambda i: texts[i])
        binder = ready[chosen]
        waiting = [b for b in waiting if b is not binder]
        if binder.name == "_":
            scope[f"_{len(scope)} "] = f"#{len(scope)}"  # no term can refer to it
        else:
            scope[binder.name] = f"#{len(scope)}"
        shown.append(texts[chosen])
    return shown


def _whole(tokens: Sequence[str], scope: Scope) -> str:
    reader = _Reader(tokens)
    text = reader.term(scope)
    if reader.left or not text:
        raise UnsupportedTerm("type")
    return text


class _Reader:
    """Reads tokens in order; a term ends at a token that belongs to its surroundings."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def left(self) -> Sequence[str]:
        """The tokens that are not read yet."""
        return self._tokens[self._next :]

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise UnsupportedTerm("the end")
        self._next += 1
        return token

    def term(self, scope: Scope) -> str:
        """Read a term and return its normal form."""
        parts: list[str] = []
        while (word := self._peek()) and word not in _AFTER_A_TERM:
            self._take()
            if word in _BINDERS:
                parts.append(self._binding(word, scope))
            elif word in ("(", "⟨"):
                parts.append(self._group(word, scope))
            elif word in _OPENING:
                raise UnsupportedTerm(word)
            else:
                parts.append(_renamed(word, scope))
        if not parts:
            raise UnsupportedTerm("an empty term")
        return " ".join(parts)

    def _group(self, opening: str, scope: Scope) -> str:
        parts: list[str] = []
        typed = False
        while True:
            if self._peek() == _OPENING[opening]:
                break
            parts.append(self.term(scope))
            separator = self._peek()
            if separator == ":" and opening == "(" and not typed and len(parts) == 1:
                typed = True
            elif separator != "," or typed:
                break
            parts.append(self._take())
        if self._take() != _OPENING[opening]:
            raise UnsupportedTerm("brackets")
        if typed and self._peek() == "→":
            raise UnsupportedTerm("a dependent arrow")
        return " ".join([opening, *parts, _OPENING[opening]])

    def _binding(self, word: str, scope: Scope) -> str:
        inner = dict(scope)
        ends = _BINDERS[word]
        shown: list[str] = []
        implicit: list[_Binder] = []

        def settle() -> None:
            if implicit:
                if any(not b.kind for b in implicit):
                    raise UnsupportedTerm("an implicit binder without a type")
                if any(b.name in inner for b in implicit):
                    raise UnsupportedTerm("a shadowed name")
                kinds = _in_canonical_order(implicit, inner)
                shown.extend(f"{{ {kind} }}" for kind in kinds)
                implicit.clear()

        first = True
        while self._peek() not in ends:
            bracket = self._peek()
            if bracket in ("(", "{"):
                self._take()
                group = self._names_and_type(_OPENING[bracket])
                self._take()
                if bracket == "{":
                    implicit += group
                else:
                    settle()
                    shown += [f"( {self._bind(b, inner)} )" for b in group]
            else:
                settle()
                shown += self._bare(ends, inner, first)
            first = False
        settle()
        if first:
            raise UnsupportedTerm("a binder without names")
        self._take()
        body = self.term(inner)
        name = "fun" if word == "λ" else word
        return f"{name} {' '.join(shown)} , {body}"

    def _bare(self, ends: Sequence[str], inner: dict[str, str], first: bool) -> list[str]:
        """Read `x y`, `x y : T` or `x > 0` up to the end of the binders."""
        names = self._names()
        nxt = self._peek()
        if nxt in ("(", "{") or nxt in ends:
            return [self._bind(_Binder(name, []), inner) for name in names]
        if not first:
            raise UnsupportedTerm("mixed binders")
        if nxt == ":":
            self._take()
            kind = self._until(ends)
            return [f"( {self._bind(b, inner)} )" for b in _group_of(names, kind)]
        if nxt in _RELATIONS and len(names) == 1:
            condition = self._until(ends)
            bound = self._bind(_Binder(names[0], []), inner)
            # Lean reads the bound outside the binder: it must not mention the name.
            if names[0] in _heads(condition):
                raise UnsupportedTerm("a bound that mentions its variable")
            return [f"{bound} {condition[0]} {_whole(condition[1:], inner)}"]
        raise UnsupportedTerm(nxt)

    def _names(self) -> list[str]:
        names: list[str] = []
        while _NAME.match(self._peek()) and self._peek() not in _BINDERS:
            names.append(self._take())
        if not names or any("." in name for name in names):
            raise UnsupportedTerm("names")
        return names

    def _names_and_type(self, closing: str) -> list[_Binder]:
        names = self._names()
        if self._peek() == closing:
            return [_Binder(name, []) for name in names]
        if self._take() != ":":
            raise UnsupportedTerm("a binder")
        return _group_of(names, self._until((closing,)))

    def _until(self, ends: Sequence[str]) -> list[str]:
        """Return the tokens of a type, up to one of `ends` outside brackets and inner binders."""
        taken: list[str] = []
        open_brackets: list[str] = []
        while open_brackets or self._peek() not in ends:
            token = self._take()
            if token in _BINDERS and not open_brackets and ends[0] not in _CLOSING:
                raise UnsupportedTerm("a binder inside a bare binder's type")
            if token in _OPENING:
                open_brackets.append(_OPENING[token])
            elif token in _CLOSING and (not open_brackets or open_brackets.pop() != token):
                raise UnsupportedTerm("brackets")
            taken.append(token)
        return taken

    @staticmethod
    def _bind(binder: _Binder, inner: dict[str, str]) -> str:
        kind = _whole(binder.kind, inner) if binder.kind else ""
        number, name = f"#{len(inner)}", binder.name
        if name in inner:
            # The scope keeps one entry per number, so a shadowed name keeps its number.
            inner[f"{name} {len(inner)}"] = inner[name]
        inner[f"_{number} " if name == "_" else name] = number
        return f"{number} : {kind}" if kind else number


def _group_of(names: Sequence[str], kind: list[str]) -> list[_Binder]:
    if set(names) - {"_"} & _heads(kind):
        raise UnsupportedTerm("a type that mentions its own name")
    return [_Binder(name, kind) for name in names]


def _renamed(token: str, scope: Scope) -> str:
    head, dot, rest = token.partition(".")
    if head == "_":
        return token
    number = scope.get(head)
    return token if number is None else f"{number}{dot}{rest}"
