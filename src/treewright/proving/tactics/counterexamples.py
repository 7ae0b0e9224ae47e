"""Counterexamples: values for the variables of a statement, tried when its negation is searched.

`∀ n, n < 5` is false at 5, and `exact fun h => absurd (h 5) (by decide)` proves that. Values follow
from the types in front of the statement and the numbers in it: simple ones first, and a bounded
number. They are tactics like others: they are in the trace, and Lean decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product

from treewright.lean.session.knowledge import TestResult
from treewright.proving.records import Candidate, GoalView
from treewright.proving.settings import FileTarget, Target
from treewright.proving.tactics.goal_outline import Binder, arguments, flat, shape, unwrap
from treewright.proving.tactics.source import Suggestions, TacticSource, stop_when

MOST_CLOSED = 96
MOST_REASONED = 16
_MOST_VALUES = 12
_MOST_BINDERS = 6
_DEEPEST = 3
_NUMBER = re.compile(r"(?<![\w.])\d{1,6}(?![\w.])")
_DECIDED = "decide"
_REASONED = ("simp", "omega", "simp +arith", "grind")
_IMPLICIT = re.compile(r"∀ [^,]*[{\[⦃]")
_SORTS = re.compile(r"(Type|Sort)\b.*")
_DATATYPE = re.compile(
    r"^inductive\s+(?P<name>[\w.']+)[^\n|]*?(?:where|:=)?\s*\n?(?P<cases>(?:\s*\|[^\n]*\n?)+)",
    re.MULTILINE,
)
_CONSTRUCTOR = re.compile(r"\|\s*(?P<name>[\w']+)(?P<fields>[^|\n]*)")
_FIELD = re.compile(r"\(([^():]+):([^()]*)\)")


class WithCounterexamples:
    """A tactic source that first suggests counterexamples to `¬ ∀ x, …`."""

    name = "witnesses"

    def __init__(self, source: TacticSource, target: Target) -> None:
        self._source = source
        self.overlaps = bool(getattr(source, "overlaps", False))
        text = target.source if isinstance(target, FileTarget) else ""
        self._datatypes = datatypes(text)

    def stop_when(self, stop: Callable[[], bool]) -> None:
        stop_when(self._source, stop)

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        answer = self._source.suggest(goals, round_number)
        if round_number or len(goals) != 1:
            return answer
        tactics = list(counterexamples(goals[0].target, self._datatypes))
        if not tactics:
            return answer
        # They come first: most take a few milliseconds, and one that works ends the search.
        step = 1.0 / (len(tactics) + 1)
        found = [
            Candidate(tactic, 2.0 - place * step, self.name) for place, tactic in enumerate(tactics)
        ]
        return Suggestions((*found, *answer.candidates), answer.complete)


def refutations(tested: TestResult, definitions: Sequence[str]) -> Iterator[str]:
    """Yield tactics that close the negation of a goal by the values that tests found.

    Args:
        tested: The values, in the order of the goal's variables.
        definitions: The definitions that the goal rests on.
    """
    arguments_ = " ".join(_argument(each.kind, each.value) for each in tested.values)
    listed = f" [{', '.join(definitions)}]" if definitions else ""
    for how in (_DECIDED, f"simp{listed}", f"simp_all{listed}", f"grind{listed}", "omega"):
        facts = arguments_.replace("?fact", f"(by first | {_DECIDED} | simp{listed} | rfl)")
        yield f"exact fun h => absurd (@h {facts}) (by {how})"
    yield f"intro h\nhave := @h {arguments_.replace('?fact', '(by simp)')}\nsimp{listed} at this"


def _argument(kind: str, value: str) -> str:
    if kind == "value":
        return f"({value})"
    return "inferInstance" if kind == "instance" else "?fact"


def counterexamples(target: str, types: dict[str, list[str]] | None = None) -> Iterator[str]:
    """Yield tactics that close `¬ ∀ x y, …` by values for `x` and `y`."""
    outline = shape(flat(target))
    if outline.kind != "not":
        return
    binders = _binders(outline.parts[0])
    if not binders:
        yield from (_DECIDED, *_REASONED[:2])
        return
    numbers = [int(found) for found in _NUMBER.findall(target)]
    values = _Values(numbers, types or {})
    head = "@h" if _IMPLICIT.search(flat(target)) else "h"
    calls = [f"({head} {' '.join(given)})" for given in values.tuples(binders)]
    for call in calls[:MOST_CLOSED]:
        yield f"exact fun h => absurd {call} (by {_DECIDED})"
    for how in _REASONED:
        for call in calls[:MOST_REASONED]:
            yield f"exact fun h => absurd {call} (by {how})"


def _binders(text: str) -> list[Binder]:
    """Return the variables of a statement; propositions between them stay in its body."""
    found: list[Binder] = []
    text = unwrap(text)
    while (outline := shape(text)).kind == "forall" and len(found) < _MOST_BINDERS:
        found += outline.binders
        text = unwrap(outline.parts[-1])
    return found[:_MOST_BINDERS]


class _Values:
    """The values of a type, as text. For a type variable they are those of a chosen type."""

    def __init__(self, numbers: Sequence[int], datatypes: dict[str, list[str]]) -> None:
        near = [m for n in dict.fromkeys(numbers) for m in (n, n + 1, max(0, n - 1))]
        self._naturals = list(dict.fromkeys([0, 1, 2, *near, 3, 5, 10]))[:_MOST_VALUES]
        self._datatypes = datatypes

    def tuples(self, binders: Sequence[Binder]) -> list[list[str]]:
        """Return tuples of values, those first that stand early in their lists."""
        chosen: list[list[str]] = []
        for sorts in self._sorts(binders):
            columns = [
                [sorts[b.name]] if b.name in sorts else self.of(_put(b.type, sorts)) or ["_"]
                for b in binders
            ]
            places = product(*(range(len(column)) for column in columns))
            ordered = sorted(islice(places, 20_000), key=lambda at: (sum(at), max(at), at))
            chosen += [
                [c[n] for c, n in zip(columns, at, strict=True)] for at in ordered[:MOST_CLOSED]
            ]
        return chosen

    def _sorts(self, binders: Sequence[Binder]) -> list[dict[str, str]]:
        names = [b.name for b in binders if b.name and _SORTS.fullmatch(b.type)]
        return [dict.fromkeys(names, sort) for sort in (("Bool", "Nat") if names else ("",))]

    def of(self, text: str, depth: int = 0) -> list[str]:
        text = unwrap(flat(text))
        if depth > _DEEPEST:
            return []
        outline = shape(text)
        if outline.kind == "implies":
            domain, result = outline.parts
            return self._functions(domain, result, depth)
        if " × " in text:
            first, second = text.split(" × ", 1)
            pairs = product(self.of(first, depth + 1)[:3], self.of(second, depth + 1)[:3])
            return [f"({a}, {b})" for a, b in pairs]
        head, *given = arguments(text) or [""]
        inner = self.of(given[0], depth + 1) if given else []
        match head:
            case "Nat":
                return [str(n) for n in self._naturals]
            case "Int":
                signed = [s for n in self._naturals for s in (str(n), f"(-{n})")]
                return [s for s in signed if s != "(-0)"][: _MOST_VALUES + 2]
            case "Bool":
                return ["true", "false"]
            case "Prop":
                return ["True", "False"]
            case "Unit":
                return ["()"]
            case "String":
                return ['""', '"a"', '"ab"']
            case "Char":
                return ["'a'", "'b'"]
            case "Fin":
                return ["0", "1", "2"]
            case "Option":
                return ["none", *(f"(some {v})" for v in inner[:4])]
            case "List" | "Array":
                return _lists(inner, "#" if head == "Array" else "")
            case _:
                return self._datatypes.get(head, [])[:_MOST_VALUES]

    def _functions(self, domain: str, result: str, depth: int) -> list[str]:
        """Return constant functions, the identity, and functions that tell arguments apart."""
        constant = [f"(fun _ => {v})" for v in self.of(result, depth + 1)[:3]]
        if unwrap(domain) == unwrap(result):
            constant.insert(1, "(fun x => x)")
        if unwrap(result) == "Prop":
            constant += [f"(fun x => x = {v})" for v in self.of(domain, depth + 1)[:2]]
        if unwrap(domain) == unwrap(result) == "Nat":
            constant += ["(fun x => x + 1)", "(fun x => 2 * x)"]
        return constant


def _lists(values: list[str], sign: str) -> list[str]:
    one = [f"{sign}[{v}]" for v in values[:3]]
    two = [f"{sign}[{a}, {b}]" for a, b in product(values[:3], repeat=2)]
    return [f"{sign}[]", *one, *two, *(f"{sign}[{', '.join(values[:3])}]",) * (len(values) > 2)]


def _put(text: str, sorts: dict[str, str]) -> str:
    for name, sort in sorts.items():
        text = re.sub(rf"(?<![\w.']){re.escape(name)}(?![\w'])", sort, text)
    return text


def datatypes(source: str) -> dict[str, list[str]]:
    """Return small values of the plain datatypes that a file declares."""
    found: dict[str, list[str]] = {}
    for declared in _DATATYPE.finditer(source):
        name = declared["name"]
        cases = [
            (c["name"], _fields(c["fields"])) for c in _CONSTRUCTOR.finditer(declared["cases"])
        ]
        basic = {**found, "Nat": ["0", "1"], "Bool": ["true", "false"]}
        values: list[str] = []
        for _ in range(_DEEPEST):
            basic[name] = list(values)
            for case, fields in cases:
                choices = [basic.get(field, [])[:3] for field in fields]
                made = (f".{case} {' '.join(g)}".strip() for g in islice(product(*choices), 6))
                values += [f"({v})" if " " in v else v for v in made]
            values = list(dict.fromkeys(values))[:_MOST_VALUES]
        found[name] = values
    return found


def _fields(text: str) -> list[str]:
    """Return the types of a constructor's fields: `(l r : Tree)`, or `: Tree → Tree → Tree`."""
    named = [of.strip() for names, of in _FIELD.findall(text) for _ in names.split()]
    if named or ":" not in text:
        return named
    return [part.strip() for part in text.partition(":")[2].split("→")[:-1]]
