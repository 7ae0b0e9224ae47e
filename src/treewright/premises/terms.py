"""Terms: a Lean type, a goal or a query as words for the lexical index.

Names of bound variables never become terms. The terms are the words of constants, operators,
numbers, and the *shape* of the conclusion: its tokens with variables numbered in order of
appearance, whole and in windows of three. So `a + b = b + a` finds `∀ (n m : Nat), n + m = m + n`,
with any names of the variables.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

_IDENTIFIER = r"(?:«[^»]*»|[^\W\d][\w'!?✝]*)"
_TOKEN = re.compile(
    rf'"[^"]*"|\.?{_IDENTIFIER}(?:\.{_IDENTIFIER})*|\d+|[!#$%&*+\-/:<=>?@\\^|~]+|[^\s\w]'
)
_BINDERS = re.compile(
    r"[({\[⦃]\s*([^():{}\[\]⦃⦄,⊢]+?)\s*:|[∀∃λΠ]\s*([^():{}\[\]⦃⦄,⊢]+?)\s*[:,]"
    r"|\bfun\s+([^():{}\[\]⦃⦄,⊢]+?)\s*(?:=>|↦)"
)
_HYPOTHESIS = re.compile(r"^([^\s:⊢∀∃(][^:⊢\n]*?) :(?!:)", re.MULTILINE)
_LETTER = re.compile(r"^[^\W\d_]['₀-₉0-9✝]*$")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*|\d+|[^\x00-\x7f]+")
_OPENING, _CLOSING = "([{⟨⦃", ")]}⟩⦄"
_SKIPPED = frozenset(",:;()[]{}⦃⦄⟨⟩⊢|")
_SYNTAX = frozenset({"∀", "∃", "fun", "λ", "→", "->", "=>", ":=", "Type", "Prop", "Sort", "by"})

NAME_WEIGHT = 2.0
SHAPE_WEIGHT = 3.0
HYPOTHESIS_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Statement:
    """A text in parts: the tokens before the conclusion, those of it, and the bound names."""

    before: tuple[str, ...]
    conclusion: tuple[str, ...]
    bound: frozenset[str]

    def is_variable(self, token: str) -> bool:
        """Whether a token is a bound name, or a single letter."""
        return token in self.bound or _LETTER.match(token) is not None


def analyse(text: str) -> Statement:
    """Take a printed type or a printed goal (`h : p` lines, then `⊢ target`) apart."""
    context, turnstile, target = text.rpartition("⊢")
    groups = (group for match in _BINDERS.finditer(text) for group in match.groups() if group)
    bound = {name for group in groups for name in group.split()}
    if turnstile:
        bound |= {name for names in _HYPOTHESIS.findall(context) for name in names.split()}
    tokens = _TOKEN.findall(target)
    start = _conclusion_start(tokens)
    before = [*_TOKEN.findall(context), *tokens[:start]]
    return Statement(tuple(before), tuple(tokens[start:]), frozenset(bound))


def _conclusion_start(tokens: list[str]) -> int:
    """Return the position after the last arrow or quantifier outside brackets."""
    depth, start, quantifier = 0, 0, False
    for index, word in enumerate(tokens):
        if word in _OPENING:
            depth += 1
        elif word in _CLOSING:
            depth -= 1
        elif depth > 0:
            continue
        elif word == "∀":
            quantifier = True
        elif word in ("→", "->"):
            start = index + 1
        elif word == "," and quantifier:
            start, quantifier = index + 1, False
    return start if start < len(tokens) else 0


def words_of(identifier: str) -> set[str]:
    """Return the lower-case words of a name: `Nat.toInt8_add` gives nat, toint8, to, int8, add."""
    found = set()
    for part in re.split(r"[._«»]+", identifier.strip(".").rstrip("✝'")):
        if part:
            found.add(part.lower())
            found.update(piece.lower() for piece in _CAMEL.findall(part))
    return found


def shape_terms(statement: Statement) -> list[str]:
    """Return the conclusion with numbered variables: windows of three tokens, and the whole."""
    numbers: dict[str, int] = {}
    skeleton = []
    for token in statement.conclusion:
        if statement.is_variable(token):
            skeleton.append(f"${numbers.setdefault(token, len(numbers))}")
        else:
            skeleton.append(token)
    plain = ["$" if token[0] == "$" and token[1:].isdigit() else token for token in skeleton]
    windows = {"~" + " ".join(plain[i : i + 3]) for i in range(len(plain) - 2)}
    return [*sorted(windows), "=" + " ".join(skeleton)] if len(skeleton) > 1 else []


def _token_terms(token: str, statement: Statement) -> set[str]:
    if token in _SKIPPED or token in _SYNTAX or statement.is_variable(token):
        return set()
    head = token.partition(".")[0]
    if head in statement.bound:  # `xs.size` of a variable: only the function counts
        token = token.removeprefix(head)
    return words_of(token) if re.match(r"\.?[^\W\d«]|«", token) else {token}


def of_declaration(name: str, type_text: str) -> dict[str, float]:
    """Return the weighted terms of a declaration."""
    statement = analyse(type_text)
    weights: dict[str, float] = defaultdict(float)
    for token in (*statement.before, *statement.conclusion):
        for term in _token_terms(token, statement):
            weights[term] += 1.0
    for term in (*words_of(name), "@" + name.lower()):
        weights[term] += NAME_WEIGHT
    for term in shape_terms(statement):
        weights[term] += SHAPE_WEIGHT if term[0] == "=" else 1.0
    return weights


def of_query(text: str) -> dict[str, float]:
    """Return the weighted terms of a goal, a statement, a name or plain words."""
    statement = analyse(text)
    weights: dict[str, float] = {}
    in_goal = "⊢" in text
    for tokens, weight in (
        (statement.before, HYPOTHESIS_WEIGHT if in_goal else 1.0),
        (statement.conclusion, 1.0),
    ):
        for token in tokens:
            for term in _token_terms(token, statement):
                weights[term] = max(weight, weights.get(term, 0.0))
            if "." in token[1:] or "_" in token:
                weights["@" + token.lower()] = 1.0
    for term in shape_terms(statement):
        weights[term] = 1.0
    return weights
