"""The literals of a Python file that may be tuned, and their possible replacements.

Pure: bytes in, sites out. A site is one token, given by its byte range, so that an edit leaves
every other byte of the file unchanged.
"""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from treewright.tree.repository.seeds import is_seed_name, seed_constants, target_name

Value = str | bool | int | float

_DESCRIPTIVE_NAME = re.compile(r"(^|_)(version|__all__)_*$", re.IGNORECASE)
"""Matches names of values that describe the program and do not change its behaviour."""
_STRUCTURAL_NAME = frozenset({"axis", "dim", "ndim", "encoding", "base"})
_DIGITS = 12
"""Significant digits of a new float: enough for tuning, few enough to hide 0.30000000000000004."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One token replaced by another."""

    replacement: str
    reason: str


@dataclass(frozen=True, slots=True)
class Site:
    """A literal, and the edits proposed for it (never empty)."""

    start: int
    end: int
    line: int
    name: str
    """The variable, argument or key that the literal belongs to; "" without one."""
    whole: bool
    """The literal is the whole value, not a part of an expression."""
    scope: str
    """The dotted name of the function or class around it; "" at the top of the file."""
    token: str
    edits: tuple[Edit, ...]


def find_sites(
    source: bytes, factors: Sequence[float], options: Mapping[str, Sequence[Value]]
) -> list[Site]:
    """Return the sites in the order of the file.

    Args:
        source: The bytes of a Python file.
        factors: Numbers are multiplied by these.
        options: Alternatives for values, by the name of a variable, argument or key.

    Raises:
        SyntaxError, ValueError: the file is not Python in UTF-8.
    """
    source.decode("utf-8")
    tree = ast.parse(source)
    finder = _Finder(source, factors, options, seed_constants(tree))
    finder.visit(tree)
    return sorted(finder.sites, key=lambda site: site.start)


class _Finder(ast.NodeVisitor):
    """Collects sites, with the nearest name and whether a literal is inside an index."""

    def __init__(
        self,
        source: bytes,
        factors: Sequence[float],
        options: Mapping[str, Sequence[Value]],
        seeds: set[ast.Constant],
    ) -> None:
        self._source = source
        self._factors = factors
        self._options = options
        self._seeds = seeds
        self._line_starts = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", source))]
        if source.startswith(b"\xef\xbb\xbf"):
            self._line_starts[0] = 3
        self._name = ""
        self._scope: list[str] = []
        self._direct = False
        self._in_index = False
        self.sites: list[Site] = []

    def visit_Assign(self, node: ast.Assign) -> None:
        self._named(target_name(node.targets[0]), node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._named(target_name(node.target), node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._named(target_name(node.target), node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._named(node.target.id, node.value)

    def visit_keyword(self, node: ast.keyword) -> None:
        self._named(node.arg or self._name, node.value)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self._named(key.value, value)
            else:
                self._named(self._name, value, direct=False)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._body(node.name, node.body)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._defaults(node.args)
        self.visit(node.body)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        outer, self._in_index = self._in_index, True
        self._named(self._name, node.slice, direct=False)
        self._in_index = outer

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip f-strings: positions inside them are not reliable before Python 3.12."""

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:  # a pattern selects a case; its literals are not quantities
            for statement in case.body:
                self.visit(statement)

    def visit_Constant(self, node: ast.Constant) -> None:
        if node in self._seeds or is_seed_name(self._name):
            return  # a better seed would be luck and not an improvement
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        token = self._source[start:end].decode("utf-8", "replace")
        edits = tuple(self._edits(node.value, token))
        if edits and _is_token_of(token, node.value):
            scope = ".".join(self._scope)
            whole = self._direct and bool(self._name)
            self.sites.append(Site(start, end, node.lineno, self._name, whole, scope, token, edits))

    def generic_visit(self, node: ast.AST) -> None:
        """Below an expression a literal is part of the named value, not the value itself."""
        outer, self._direct = self._direct, False
        if isinstance(node, ast.UnaryOp):
            self._direct = outer
        super().generic_visit(node)
        self._direct = outer

    def _named(self, name: str, value: ast.expr, *, direct: bool = True) -> None:
        outer = self._name, self._direct
        self._name, self._direct = name, direct
        self.visit(value)
        self._name, self._direct = outer

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._defaults(node.args)
        self._body(node.name, node.body)

    def _body(self, name: str, statements: list[ast.stmt]) -> None:
        self._scope.append(name)
        for statement in statements:
            self.visit(statement)
        self._scope.pop()

    def _defaults(self, arguments: ast.arguments) -> None:
        positional = [*arguments.posonlyargs, *arguments.args]
        with_default = positional[len(positional) - len(arguments.defaults) :]
        for argument, default in zip(with_default, arguments.defaults, strict=True):
            self._named(argument.arg, default)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                self._named(argument.arg, default)

    def _offset(self, line: int, column: int) -> int:
        return self._line_starts[line - 1] + column

    def _edits(self, value: object, token: str) -> list[Edit]:
        if self._direct and self._name in self._options:
            if not isinstance(value, str | bool | int | float | None):
                return []
            return _option_edits(self._name, value, token, self._options[self._name])
        if isinstance(value, bool) or not isinstance(value, int | float):
            return []
        if _DESCRIPTIVE_NAME.search(self._name) or self._name in _STRUCTURAL_NAME:
            return []
        if isinstance(value, int) and (self._in_index or (value <= 1 and not self._direct)):
            return []
        return _number_edits(value, token, self._factors)


def _number_edits(value: float, token: str, factors: Sequence[float]) -> list[Edit]:
    edits: dict[str, Edit] = {}
    for factor in factors:
        if isinstance(value, int):
            replacement = _scale_int(value, token, factor)
        else:
            replacement = _scale_float(value, token, factor)
        if replacement is not None and replacement != token:
            edits.setdefault(replacement, Edit(replacement, f"scaled by {factor:g}"))
    return list(edits.values())


def _scale_int(value: int, token: str, factor: float) -> str | None:
    """Return a scaled integer of at least 1; None for a mask in hexadecimal or binary."""
    if value < 1 or not token.replace("_", "").isdecimal() or factor == 1:
        return None
    try:
        scaled = max(1, math.floor(value * factor + 0.5))
    except OverflowError:
        return None
    if scaled == value:  # rounding removed the change, so move one step
        scaled = value + 1 if factor > 1 else value - 1
    if scaled < 1:
        return None
    return f"{scaled:_}" if "_" in token else str(scaled)


def _scale_float(value: float, token: str, factor: float) -> str | None:
    scaled = float(f"{value * factor:.{_DIGITS}g}")
    if scaled == 0 or scaled == value or not math.isfinite(scaled):
        return None
    if "e" not in token.lower():
        return repr(scaled)
    mantissa, exponent = f"{scaled:.{_DIGITS - 1}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def _option_edits(
    name: str, value: Value | None, token: str, alternatives: Sequence[Value]
) -> list[Edit]:
    now = (type(value), value)
    different = (other for other in alternatives if (type(other), other) != now)
    reason = f"one of the options of `{name}`"
    return [Edit(_literal(other, double='"' in token), reason) for other in different]


def _literal(value: Value, *, double: bool) -> str:
    """Return the value as a token, with the quotes of the old token if possible."""
    text = repr(value)
    if double and text.startswith("'") and '"' not in text:
        return f'"{text[1:-1]}"'
    return text


def _is_token_of(token: str, value: object) -> bool:
    """Return whether a text is one token with this value.

    Joined strings, strings that span lines, and positions that an encoding has shifted are not.
    """
    if "\n" in token or "\r" in token:
        return False
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(token).readline))
        means = ast.literal_eval(token)
    except (tokenize.TokenError, SyntaxError, ValueError):
        return False
    kinds = (tokenize.NUMBER, tokenize.STRING, tokenize.NAME)
    single = sum(found.type in kinds for found in tokens) == 1 and tokens[0].string == token
    return single and type(means) is type(value) and means == value
