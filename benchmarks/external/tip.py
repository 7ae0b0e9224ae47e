"""Problems of `tip-org/benchmarks`, translated from SMT-LIB to Lean files.

`python -m benchmarks.external.tip CHECKOUT --set isaplanner --out results.jsonl` writes one Lean
file a problem into `results.files` and measures `prove` on them; with `--translate` it only
writes the files. The datatypes and functions of a problem keep their names in a namespace `Tip`;
its property is `theorem NAME`, with `sorry` for a proof. Nothing of Lean's library is used but
`Bool` and `Int`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.external import scoreboard
from benchmarks.external.scoreboard import Half, Problem, sha256_half

SETS = ("isaplanner", "prod", "tip2015", "false", "grammars")
Term = Any
"""An S-expression: a `str`, or a list of S-expressions."""

_TOKEN = re.compile(r";[^\n]*|\|[^|]*\||[()]|[^\s()|;]+")
_SIGNS = {
    "+": "add", "-": "sub", "*": "mul", "==": "eq", "/=": "ne", "<": "lt", "<=": "le", ">": "gt",
    ">=": "ge", "++": "append", "&&": "and", "||": "or", "!!": "get", "%": "mod", "/": "div",
    "^": "pow", "$": "apply", "?": "q",
}  # fmt: skip
_LETTERS = {
    ":": "c",
    "+": "plus",
    ".": "dot",
    ">": "gt",
    "<": "lt",
    "=": "eq",
    "-": "_",
    "*": "star",
    "&": "and",
    "%": "mod",
}
_RESERVED = """
at break by catch class continue def do else end example export extends finally for from fun have
if import in inductive instance let macro match mutual namespace open mut partial prefix return
section show structure suffices syntax then theorem try universe unless using variable where with
Type Sort Prop
"""
_KEYWORDS = frozenset(_RESERVED.split())
_INTEGERS = {"+": "+", "-": "-", "*": "*", "div": "/", "mod": "%"}
_ORDERS = {"<": "<", "<=": "≤", ">": ">", ">=": "≥"}
_CONNECTIVES = {  # for truth values and for propositions
    "and": ("&&", "∧"),
    "or": ("||", "∨"),
    "=>": ("", "→"),
}


def parse(text: str) -> list[Term]:
    """Return the S-expressions of a text.

    Example:
        >>> parse("(prove (= x |-2|)) ; done")
        [['prove', ['=', 'x', '|-2|']]]
    """
    stack: list[list[Term]] = [[]]
    for token in _TOKEN.findall(text):
        if token.startswith(";"):
            continue
        if token == "(":
            stack.append([])
        elif token == ")":
            closed = stack.pop()
            stack[-1].append(closed)
        else:
            stack[-1].append(token)
    return stack[0]


def lean_name(symbol: str) -> str:
    """Return a Lean identifier for an SMT-LIB symbol.

    Example:
        >>> lean_name("|-2|"), lean_name("+2"), lean_name("at")
        ('sub2', 'add2', 'at_')
    """
    symbol = symbol.strip("|")
    for sign in sorted(_SIGNS, key=len, reverse=True):
        if symbol.startswith(sign):
            symbol = _SIGNS[sign] + symbol[len(sign) :]
    name = re.sub(r"[^\w']", lambda sign: _LETTERS.get(sign[0], "_"), symbol).strip("_") or "x"
    if name[0].isdigit():
        name = f"x{name}"
    return f"{name}_" if name in _KEYWORDS else name


class Translator:
    """Translates the commands of one problem."""

    def __init__(self, commands: list[Term]) -> None:
        self._commands = commands
        self._names: dict[str, str] = {}  # the Lean names of the symbols so far
        self._constructors: dict[str, str] = {}
        self._functions: set[str] = set()
        self._group: frozenset[str] = frozenset()  # the functions that are being defined together
        self._has_equality = any(_has_equality(command) for command in commands)

    def lean(self, name: str) -> str:
        """Return the Lean file of the problem, with its property as `theorem name`."""
        parts = [part for command in self._commands for part in self._command(command, name)]
        return "\n\n".join(["namespace Tip", *parts, "end Tip"]) + "\n"

    def _name(self, symbol: str) -> str:
        """Return the Lean name of a symbol. Different symbols get different names."""
        symbol = symbol.strip("|")
        if symbol == "_":
            return symbol
        if symbol not in self._names:
            name, number = lean_name(symbol), 1
            while name in self._names.values():
                number += 1
                name = f"{lean_name(symbol)}_{number}"
            self._names[symbol] = name
        return self._names[symbol]

    def _command(self, command: Term, name: str) -> Iterator[str]:
        match command:
            case ["declare-datatype", str(symbol), body]:
                yield self._datatype(symbol, body)
            case ["declare-datatypes", list(heads), list(bodies)]:
                parts = [self._datatype(h[0], b) for h, b in zip(heads, bodies, strict=True)]
                yield parts[0] if len(parts) == 1 else "mutual\n" + "\n\n".join(parts) + "\nend"
            case ["declare-sort", str(symbol), _]:
                yield f"axiom {self._name(symbol)} : Type"
            case ["define-fun" | "define-fun-rec", str(symbol), *rest]:
                self._group = frozenset([symbol])
                yield self._function(symbol, rest)
            case ["define-funs-rec", list(heads), list(bodies)]:
                self._group = frozenset(h[0] for h in heads)
                self._functions |= self._group
                parts = [
                    self._function(h[0], [*h[1:], b]) for h, b in zip(heads, bodies, strict=True)
                ]
                yield "mutual\n" + "\n\n".join(parts) + "\nend"
            case ["assert", _]:
                return  # a lemma that the problem offers to provers
            case ["prove" | "assert-not", term]:
                yield f"theorem {name} {self._property(term)} := by\n  sorry"
            case _:
                raise ValueError(f"cannot translate {command!r:.80}")

    def _datatype(self, symbol: str, body: Term) -> str:
        variables: list[str] = []
        if body[0] == "par":
            variables, body = body[1], body[2]
        type_name = self._name(symbol)
        head = "".join(f" ({self._name(v)} : Type)" for v in variables)
        lines = [f"inductive {type_name}{head} where"]
        for constructor in body:
            own, *fields = constructor if isinstance(constructor, list) else [constructor]
            self._constructors[own] = f"{type_name}.{self._name(own)}"
            given = "".join(f" ({self._name(f)} : {self._type(t)})" for f, t in fields)
            lines.append(f"  | {self._name(own)}{given}")
        if self._has_equality:
            lines.append("deriving DecidableEq")
        return "\n".join(lines)

    def _type(self, term: Term) -> str:
        match term:
            case str():
                return self._name(term)
            case ["=>", *parts]:
                return "(" + " → ".join(self._type(part) for part in parts) + ")"
            case _:
                return "(" + " ".join(self._type(part) for part in term) + ")"

    def _function(self, symbol: str, rest: list[Term]) -> str:
        variables: list[str] = []
        if rest[0] and rest[0][0] == "par":
            _, variables, inner = rest[0]
            # `(par (a) ((args) result)) body` or `(par (a) (args result body))`
            rest = [*inner, *rest[1:]]
        arguments, result, body = rest
        self._functions.add(symbol)
        given = self._variables(variables) + self._binders(arguments)
        body_text = self._term(
            _with_patterns(body, self._group, dict.fromkeys(n for n, _ in arguments)),
            is_prop=False,
            indent=1,
        )
        measure = self._int_measure(symbol, [name for name, _ in arguments], body)
        end = f"\ntermination_by {measure}" if measure else ""
        return f"def {self._name(symbol)}{given} : {self._type(result)} :=\n  {body_text}{end}"

    def _int_measure(self, function: str, parameters: list[str], body: Term) -> str:
        """Return what goes down in a recursion over integers, such as the one from `x` to `y`.

        Lean finds by itself how a recursion over a datatype ends; then, and if this finds nothing,
        the answer is ''.
        """
        calls = list(_calls(function, body))
        if body[0] != "ite" or len(body[1]) != 3 or not calls:
            return ""
        sign, left, right = body[1]
        if sign in ("<", ">="):
            sign, left, right = {"<": ">", ">=": "<="}[sign], right, left
        steps = {">": (["+", "1", left], ["+", left, "1"]), "<=": (["-", left, "1"],)}
        if left not in parameters or sign not in steps:
            return ""
        at = parameters.index(left)
        if not all(len(call) > at and call[at] in steps[sign] for call in calls):
            return ""
        if sign == "<=":
            return f"{self._name(left)}.toNat" if str(right).isdigit() else ""
        if right not in parameters or any(c[parameters.index(right)] != right for c in calls):
            return ""
        return f"({self._name(right)} + 1 - {self._name(left)}).toNat"

    def _variables(self, variables: list[str]) -> str:
        equality = self._has_equality
        return "".join(
            f" {{{self._name(v)} : Type}}" + (f" [DecidableEq {self._name(v)}]" if equality else "")
            for v in variables
        )

    def _binders(self, binders: list[Term]) -> str:
        return "".join(f" ({self._name(n)} : {self._type(t)})" for n, t in binders)

    def _property(self, term: Term) -> str:
        head = ""
        if term[0] == "par":
            head, term = self._variables(term[1]), term[2]
        while term[0] == "forall":
            head += self._binders(term[1])
            term = term[2]
        return f"{head.strip()} :\n    {self._term(term, is_prop=True, indent=2)}"

    def _term(self, term: Term, *, is_prop: bool, indent: int = 1) -> str:
        """Return a term as Lean text; with `is_prop` truth values become propositions."""
        if isinstance(term, str):
            if re.fullmatch(r"\d+", term):
                return term
            if term in ("true", "false"):
                return term.capitalize() if is_prop else term
            return self._constructors.get(term, self._name(term))

        def sub(part: Term) -> str:
            return self._grouped(self._term(part, is_prop=is_prop, indent=indent))

        def value(part: Term) -> str:
            return self._grouped(self._term(part, is_prop=False, indent=indent))

        match term:
            case ["match", subject, list(cases)]:
                inner = "  " * (indent + 1)
                lines = [f"match {self._term(subject, is_prop=False)} with"]
                for pattern, body in cases:
                    text = self._term(body, is_prop=is_prop, indent=indent + 2)
                    lines.append(f"{inner}| {self._pattern(pattern)} => {text}")
                return "\n".join(lines)
            case ["ite", condition, then, other]:
                texts = self._term(condition, is_prop=True), sub(then), sub(other)
                return "if {} then {} else {}".format(*texts)
            case ["let", list(bindings), body]:
                lets = "; ".join(f"let {self._name(n)} := {value(v)}" for n, v in bindings)
                return f"{lets}; {sub(body)}"
            case ["lambda", list(binders), body]:
                given = self._binders(binders).strip()
                return f"fun {given} => {self._term(body, is_prop=False, indent=indent)}"
            case ["forall" | "exists" as quantifier, list(binders), body]:
                sign = "∀" if quantifier == "forall" else "∃"
                return f"{sign}{self._binders(binders)}, {self._term(body, is_prop=is_prop)}"
            case ["@", function, *given]:
                return " ".join(value(part) for part in [function, *given])
            case ["_" | "as", str(symbol), *_]:
                return self._constructors.get(symbol, self._name(symbol))
            case ["=" | "distinct" as sign, left, right]:
                text = f"{value(left)} {'=' if sign == '=' else '≠'} {value(right)}"
                return text if is_prop else f"decide ({text})"
            case ["not", inner]:
                return f"¬ {sub(inner)}" if is_prop else f"!{sub(inner)}"
            case ["=>", *parts] if not is_prop:
                *conditions, last = (sub(part) for part in parts)
                return " || ".join([*(f"!{c}" for c in conditions), last])
            case [str(sign), *parts] if sign in _CONNECTIVES and sign not in self._functions:
                connective = _CONNECTIVES[sign][is_prop]
                return f" {connective} ".join(sub(part) for part in parts)
            case [str(sign), *parts] if sign not in self._functions and sign in _INTEGERS:
                if len(parts) == 1:
                    return f"-{value(parts[0])}"
                return f" {_INTEGERS[sign]} ".join(value(part) for part in parts)
            case [str(sign), left, right] if sign not in self._functions and sign in _ORDERS:
                text = f"{value(left)} {_ORDERS[sign]} {value(right)}"
                return text if is_prop else f"decide ({text})"
            case [head, *given]:
                return " ".join(value(part) for part in [head, *given])
            case _:
                raise ValueError(f"cannot translate {term!r:.80}")

    def _pattern(self, pattern: Term) -> str:
        if isinstance(pattern, str):
            return self._constructors.get(pattern, self._name(pattern))
        head, *fields = pattern
        return " ".join([self._constructors[head], *(self._name(f) for f in fields)])

    @staticmethod
    def _grouped(text: str) -> str:
        is_atom = re.fullmatch(r"[\w'.]+", text) is not None
        return text if is_atom else f"({text})"


def _calls(function: str, term: Term) -> Iterator[list[Term]]:
    """Yield the arguments of each call of a function."""
    if isinstance(term, list):
        if term and term[0] == function:
            yield term[1:]
        for part in term:
            yield from _calls(function, part)


def _with_patterns(
    term: Term, group: frozenset[str], parameters: Mapping[str, Term | None]
) -> Term:
    """Return a function's body with its parameters written as the patterns that they match.

    This is done in the arguments of recursive calls only: `g x` in the case `x = cons y ys` becomes
    `g (cons y ys)`, which Lean compares with the argument that the function was called with.

    Args:
        term: The body, or a part of it.
        group: The functions that are defined together.
        parameters: The parameters that keep their meaning in this part, each with the pattern that
            it matches there.
    """
    match term:
        case str():
            return term
        case ["match", subject, list(cases)]:
            new = []
            for pattern, body in cases:
                bound = {pattern} if isinstance(pattern, str) else set(pattern[1:])
                inner = _without(parameters, bound)
                if isinstance(subject, str) and subject in inner and isinstance(pattern, list):
                    inner[subject] = pattern
                new.append([pattern, _with_patterns(body, group, inner)])
            return ["match", _with_patterns(subject, group, parameters), new]
        case ["let" | "lambda" | "forall" | "exists", list(bindings), _]:
            inner = _without(parameters, {binding[0] for binding in bindings})
            return [*term[:2], _with_patterns(term[2], group, inner)]
        case [str(head), *given] if head in group:
            return [
                head,
                *(
                    (parameters.get(part) or part)
                    if isinstance(part, str)
                    else _with_patterns(part, group, parameters)
                    for part in given
                ),
            ]
        case _:
            return [_with_patterns(part, group, parameters) for part in term]


def _without(parameters: Mapping[str, Term | None], bound: set[str]) -> dict[str, Term | None]:
    """Return the parameters, and their patterns, that keep their meaning where names are bound."""
    return {
        name: pattern if pattern and bound.isdisjoint(pattern) else None
        for name, pattern in parameters.items()
        if name not in bound
    }


def _has_equality(command: Term, *, in_property: bool = False) -> bool:
    """Return whether a definition compares two values for equality."""
    if isinstance(command, str):
        return False
    if command and command[0] in ("prove", "assert-not"):
        return False
    if len(command) == 3 and command[0] in ("=", "distinct"):
        return True
    return any(_has_equality(part) for part in command)


def translate(path: Path) -> str:
    """Return the Lean file for one problem."""
    return Translator(parse(path.read_text("utf-8"))).lean(lean_name(path.stem))


def half_of(set_name: str, name: str) -> Half:
    """Return the half of a problem: even-numbered properties of IsaPlanner are held out."""
    if set_name == "isaplanner":
        return "tuned" if int(name.removeprefix("prop_")) % 2 else "held_out"
    return sha256_half(name)


def translate_set(directory: Path, files: Path) -> list[Problem]:
    """Write a Lean file for each problem of a directory; name those that cannot be translated."""
    files.mkdir(parents=True, exist_ok=True)
    problems = []
    for path in sorted(directory.glob("*.smt2")):
        name = path.stem
        try:
            text = translate(path)
        except (ValueError, KeyError) as error:
            print(f"{path.name} is left out: {error}")
            continue
        file = files / f"{name}.lean"
        file.write_text(text, "utf-8")
        problems.append(Problem(name, file, half_of(directory.name, name)))
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.external.tip", description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of tip-org/benchmarks")
    parser.add_argument("--set", choices=SETS, default="isaplanner", help="which problems")
    parser.add_argument("--translate", action="store_true", help="only write the Lean files")
    scoreboard.add_options(parser)
    options = parser.parse_args()
    files = options.out.with_suffix(".files").resolve()
    problems = translate_set(options.checkout / "benchmarks" / options.set, files)
    if options.translate:
        print(f"{len(problems)} problems in {files}")
        return
    scoreboard.run(problems, options)


if __name__ == "__main__":
    main()
