"""Translate problems of `tip-org/benchmarks` from SMT-LIB to Lean files.

`python -m benchmarks.external.tip CHECKOUT/benchmarks/isaplanner OUT` writes one Lean file a problem. The datatypes
and functions of a problem keep their names in a namespace `Tip`; its property is `theorem NAME`, with `sorry` for a
proof. Nothing of Lean's library is used but `Bool` and `Int`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

Term = str | list["Term"]

_TOKEN = re.compile(r";[^\n]*|\|[^|]*\||[()]|[^\s()|;]+")
_SIGNS = {
    "+": "add", "-": "sub", "*": "mul", "==": "eq", "/=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
    "++": "append", "&&": "and", "||": "or", "!!": "get", "%": "mod", "/": "div", "^": "pow", "$": "apply", "?": "q",
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
_KEYWORDS = frozenset(
    [
        "at",
        "by",
        "class",
        "def",
        "do",
        "else",
        "end",
        "example",
        "export",
        "extends",
        "finally",
        "for",
        "from",
        "fun",
        "have",
        "if",
        "import",
        "in",
        "inductive",
        "instance",
        "let",
        "macro",
        "match",
        "mutual",
        "namespace",
        "open",
        "partial",
        "prefix",
        "section",
        "show",
        "structure",
        "suffices",
        "syntax",
        "then",
        "theorem",
        "universe",
        "unless",
        "using",
        "variable",
        "where",
        "with",
        "Type",
        "Sort",
        "Prop",
    ]
)
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
        self._constructors: dict[str, str] = {}
        self._functions: set[str] = set()
        self._has_equality = any(_has_equality(command) for command in commands)

    def lean(self, name: str) -> str:
        """Return the Lean file of the problem, with its property as `theorem name`."""
        parts = [part for command in self._commands for part in self._command(command, name)]
        return "\n\n".join(["namespace Tip", *parts, "end Tip"]) + "\n"

    def _command(self, command: Term, name: str) -> Iterator[str]:
        match command:
            case ["declare-datatype", str(symbol), body]:
                yield self._datatype(symbol, body)
            case ["declare-datatypes", list(heads), list(bodies)]:
                parts = [self._datatype(h[0], b) for h, b in zip(heads, bodies, strict=True)]
                yield parts[0] if len(parts) == 1 else "mutual\n" + "\n\n".join(parts) + "\nend"
            case ["declare-sort", str(symbol), _]:
                yield f"axiom {lean_name(symbol)} : Type"
            case ["define-fun" | "define-fun-rec", str(symbol), *rest]:
                yield self._function(symbol, rest)
            case ["define-funs-rec", list(heads), list(bodies)]:
                self._functions.update(h[0] for h in heads)
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
        type_name = lean_name(symbol)
        head = "".join(f" ({lean_name(v)} : Type)" for v in variables)
        lines = [f"inductive {type_name}{head} where"]
        for constructor in body:
            own, *fields = constructor if isinstance(constructor, list) else [constructor]
            self._constructors[own] = f"{type_name}.{lean_name(own)}"
            given = "".join(f" ({lean_name(f)} : {self._type(t)})" for f, t in fields)
            lines.append(f"  | {lean_name(own)}{given}")
        if self._has_equality:
            lines.append("deriving DecidableEq")
        return "\n".join(lines)

    def _type(self, term: Term) -> str:
        match term:
            case str():
                return lean_name(term)
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
        body_text = self._term(body, is_prop=False, indent=1)
        return f"def {lean_name(symbol)}{given} : {self._type(result)} :=\n  {body_text}"

    def _variables(self, variables: list[str]) -> str:
        equality = self._has_equality
        return "".join(
            f" {{{lean_name(v)} : Type}}" + (f" [DecidableEq {lean_name(v)}]" if equality else "")
            for v in variables
        )

    def _binders(self, binders: list[Term]) -> str:
        return "".join(f" ({lean_name(n)} : {self._type(t)})" for n, t in binders)

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
            return self._constructors.get(term, lean_name(term))

        def sub(part: Term) -> str:
            return self._group(self._term(part, is_prop=is_prop, indent=indent))

        def value(part: Term) -> str:
            return self._group(self._term(part, is_prop=False, indent=indent))

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
                lets = "; ".join(f"let {lean_name(n)} := {value(v)}" for n, v in bindings)
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
                return self._constructors.get(symbol, lean_name(symbol))
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
            return self._constructors.get(pattern, lean_name(pattern))
        head, *fields = pattern
        return " ".join([self._constructors[head], *(lean_name(f) for f in fields)])

    @staticmethod
    def _group(text: str) -> str:
        is_atom = re.fullmatch(r"[\w'.]+", text) is not None
        return text if is_atom else f"({text})"


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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.external.tip", description=__doc__)
    parser.add_argument("problems", type=Path, help="a directory of .smt2 files")
    parser.add_argument("out", type=Path, help="the directory for the Lean files")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(options.problems.glob("*.smt2")):
        try:
            text = translate(path)
        except (ValueError, KeyError) as error:
            print(f"{path.name}: {error}")
            continue
        (options.out / f"{path.stem}.lean").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
