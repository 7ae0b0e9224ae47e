"""Seeds of random numbers in Python code.

Find the values in a syntax tree that only seed random numbers, and remove them from it. A
candidate that differs from its parent only in such values is lucky, not better.

A value is a seed if it stands

- in a call that seeds: `np.random.seed(42)`, `default_rng(42)`, `torch.manual_seed(42)`, but not in
  a function of the same file with such a name that seeds nothing;
- behind a name that says so: `SEED = 42`, `self.seed = 42`, `def f(seed=42)`, `f(random_state=42)`,
  `{"seed": 42}`, `config["seed"] = 42`, `add_argument("--seed", default=42)`;
- behind any other name of the same file that is used only in these places: `n = 42; seed(n)`.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterable, Iterator

_SEEDING_CALLS = frozenset({
    "default_rng", "fold_in", "MT19937", "PCG64", "PCG64DXSM", "Philox", "PRNGKey", "Random",
    "RandomState", "Rngs", "SeedSequence", "SFC64", "srand",
})  # fmt: skip
_SEEDING_WORDS = frozenset({
    "all", "cuda", "everything", "fix", "global", "init", "manual", "np", "numpy", "py", "python",
    "random", "reset", "rng", "seed", "seeds", "set", "torch", "worker",
})  # fmt: skip
"""A function is taken to seed if its name is made of these words and has `seed` among them."""
_COUNTING_WORDS = frozenset({"count", "len", "max", "min", "n", "num", "number", "per"})
"""`n_seeds` counts seeds, and is none."""
_TRANSPARENT_CALLS = frozenset({
    "abs", "field", "Field", "hash", "int", "int32", "int64", "SeedSequence", "str", "uint32",
    "uint64",
})  # fmt: skip
"""Calls that pass a seed on: their arguments are still the seed."""
_RANDOM_MODULES = frozenset({"jax", "numpy", "random", "tensorflow", "torch"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def is_seed_name(name: str) -> bool:
    """Return whether a variable, argument or key of this name holds a seed."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or not _COUNTING_WORDS.isdisjoint(words):
        return False
    if words[-1].endswith("seed") or words[-1] in ("seeds", "randomstate"):
        return True
    return words == ["rng"] or words[-2:] in (
        ["random", "state"],
        ["seed", "base"],
        ["seed", "offset"],
        ["seed", "value"],
    )


def seed_constants(tree: ast.AST) -> set[ast.Constant]:
    """Return the literals of a syntax tree that are seeds."""
    finder = _Finder.of(tree)
    leaves = (leaf for value in finder.values for leaf in _leaves(value))
    return {leaf for leaf in leaves if isinstance(leaf, ast.Constant) and _is_literal(leaf)}


def remove_seeds(tree: ast.AST) -> None:
    """Remove all seeds from a syntax tree, so that trees that differ only in seeds are equal.

    An argument or assignment that holds a seed goes as a whole, and so does a call that only
    seeds: adding `random.seed(7)` or `random_state=7` is a change of the seed.
    """
    finder = _Finder.of(tree)
    _Remover(finder).visit(tree)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    _ImportRemover(used).visit(tree)


def remove_docstrings(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            del node.body[0]


class _Finder(ast.NodeVisitor):
    """Collects the expressions that stand where a seed belongs."""

    def __init__(
        self, names: frozenset[str] = frozenset(), own: frozenset[str] = frozenset()
    ) -> None:
        self._names = names
        self._own = own
        self.values: list[ast.expr] = []
        self._constants: set[int] = set()

    @classmethod
    def of(cls, tree: ast.AST) -> _Finder:
        """Return the finder after two passes: the second knows the names that only hold seeds."""
        own = _functions_without_random_numbers(tree)
        first = cls(own=own)
        first.visit(tree)
        loads = Counter(
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        )
        seeding = Counter(
            leaf.id
            for value in first.values
            for leaf in _leaves(value)
            if isinstance(leaf, ast.Name)
        )
        finder = cls(frozenset(name for name, uses in seeding.items() if uses == loads[name]), own)
        finder.visit(tree)
        return finder

    def is_seed(self, target: ast.expr) -> bool:
        """Return whether a variable, attribute or entry holds a seed."""
        if isinstance(target, ast.Name) and target.id in self._names:
            return True
        return is_seed_name(target_name(target))

    def is_removable(self, value: ast.expr) -> bool:
        """Return whether an expression consists of seeds only; the length of a list counts."""
        if id(value) in self._constants:
            return True
        if isinstance(value, ast.Tuple | ast.List | ast.Set):
            return False
        return all(_is_literal(leaf) or self.is_seed(leaf) for leaf in _leaves(value))

    def is_seeding(self, function: ast.expr) -> bool:
        """Return whether a call of this function sets a seed.

        A function of the same file is none that draws no random numbers: it may begin a search.
        """
        return seeds_random_numbers(function) and _name(function) not in self._own

    def targets(self, target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Yield pairs of a plain target and its value, also of `a, b = 1, 2`."""
        if (
            isinstance(target, ast.Tuple | ast.List)
            and isinstance(value, ast.Tuple | ast.List)
            and len(target.elts) == len(value.elts)
        ):
            for each, part in zip(target.elts, value.elts, strict=True):
                yield from self.targets(each, part)
        else:
            yield target, value

    def visit_Call(self, node: ast.Call) -> None:
        if self.is_seeding(node.func):
            found = _seed_arguments(node)
            self.values.extend(found)
            self._constants.update(id(each) for each in found if _reads_no_variable(each))
        else:
            names = [_is_seed_text(argument) for argument in node.args]
            if any(names):  # getattr(args, "seed", 42), add_argument("--seed", default=42)
                self.values.extend(node.args[names.index(True) + 1 :])
                self.values.extend(k.value for k in node.keywords if k.arg == "default")
            self.values.extend(k.value for k in node.keywords if k.arg and is_seed_name(k.arg))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assigned(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assigned(node.target, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._assigned(node.target, node.value)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._assigned(node.target, node.value)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None and _is_seed_text(key):
                self.values.append(value)
        self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> None:
        for argument, default in _defaults(node):
            if is_seed_name(argument.arg):
                self.values.append(default)
        self.generic_visit(node)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        for each, part in self.targets(target, value):
            if self.is_seed(each):
                self.values.append(part)


class _Remover(ast.NodeTransformer):
    def __init__(self, finder: _Finder) -> None:
        self._finder = finder
        self._removed = {id(value) for value in finder.values if finder.is_removable(value)}
        self._literals = {
            id(leaf) for value in finder.values for leaf in _leaves(value) if _is_literal(leaf)
        }

    def visit(self, node: ast.AST):
        if id(node) in self._removed or id(node) in self._literals:
            return ast.Constant(None)
        return super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.args = [each for each in node.args if id(each) not in self._removed]
        node.keywords = [each for each in node.keywords if id(each.value) not in self._removed]
        self.generic_visit(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        self.generic_visit(node)
        call = node.value
        if not isinstance(call, ast.Call) or call.args or call.keywords:
            return node
        return None if self._finder.is_seeding(call.func) else node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        pairs = [pair for each in node.targets for pair in self._finder.targets(each, node.value)]
        if all(
            id(value) in self._removed and self._finder.is_seed(target) for target, value in pairs
        ):
            return None
        self.generic_visit(node)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        kept = [
            (key, value)
            for key, value in zip(node.keys, node.values, strict=True)
            if id(value) not in self._removed
        ]
        node.keys, node.values = [key for key, _ in kept], [value for _, value in kept]
        self.generic_visit(node)
        return node


class _ImportRemover(ast.NodeTransformer):
    """Removes unused imports of modules that make random numbers: they come with a new seed."""

    def __init__(self, used: set[str]) -> None:
        self._used = used

    def visit_Import(self, node: ast.Import) -> ast.Import | None:
        node.names = [each for each in node.names if not self._is_idle(each.name, each)]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        module = node.module or ""
        node.names = [each for each in node.names if not self._is_idle(module, each)]
        return node if node.names else None

    def _is_idle(self, module: str, alias: ast.alias) -> bool:
        bound = alias.asname or alias.name.partition(".")[0]
        return module.partition(".")[0] in _RANDOM_MODULES and bound not in self._used


def _functions_without_random_numbers(tree: ast.AST) -> frozenset[str]:
    """Return the functions that a file defines and that seed nothing."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    defined = {node.name: node for node in ast.walk(tree) if isinstance(node, kinds)}

    def seeds_something(node: ast.AST) -> bool:
        match node:
            case ast.Call():
                return seeds_random_numbers(node.func) and _name(node.func) not in defined
            case ast.Attribute(ctx=ast.Store()):
                return is_seed_name(node.attr)
            case _:
                return False

    return frozenset(
        name for name, node in defined.items() if not any(map(seeds_something, ast.walk(node)))
    )


def _seed_arguments(node: ast.Call) -> list[ast.expr]:
    """Return the arguments of a seeding call that are seeds.

    A function that is only known by its name may seed something else: `cells.seed(density=0.3)`.
    """
    is_known, name = _name(node.func) in _SEEDING_CALLS, _name(node.func)
    named = [
        keyword.value
        for keyword in node.keywords
        if name == "Rngs" or keyword.arg in ("a", "key") or is_seed_name(keyword.arg or "")
    ]
    return [*(node.args if is_known else node.args[:1]), *named]


def seeds_random_numbers(function: ast.expr) -> bool:
    """Return whether a call of this function sets a seed."""
    name = _name(function)
    if name in _SEEDING_CALLS:
        return True
    if name == "key" and isinstance(function, ast.Attribute):  # jax.random.key(42)
        return _name(function.value) in ("random", "jrandom", "jr")
    words = {word.lower() for word in _WORD.findall(name)}
    return words <= _SEEDING_WORDS and bool(words & {"seed", "seeds"})


def target_name(target: ast.expr) -> str:
    """Return the variable, attribute or key that is assigned to; "" for any other target."""
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return target.slice.value if isinstance(target.slice.value, str) else ""
    return _name(target)


def _leaves(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts that a seed is computed from."""
    parts: Iterable[ast.expr]
    match value:
        case ast.UnaryOp():
            parts = [value.operand]
        case ast.BinOp():
            parts = [value.left, value.right]
        case ast.BoolOp():
            parts = value.values
        case ast.IfExp():
            parts = [value.body, value.orelse]
        case ast.Tuple() | ast.List() | ast.Set():
            parts = value.elts
        case ast.Starred():
            parts = [value.value]
        case ast.Call() if _name(value.func) in _TRANSPARENT_CALLS:
            parts = [*value.args, *(keyword.value for keyword in value.keywords)]
        case _:
            yield value
            return
    is_list = isinstance(value, ast.Tuple | ast.List | ast.Set)
    for part in parts:
        if is_list and isinstance(part, ast.Tuple | ast.List | ast.Set):
            yield part  # seeds are numbers; a list of lists begins a search
        else:
            yield from _leaves(part)


def _is_literal(value: ast.expr) -> bool:
    """Return whether a value may be a seed: a whole number, text or None."""
    return isinstance(value, ast.Constant) and not isinstance(value.value, bool | float | complex)


def _reads_no_variable(value: ast.expr) -> bool:
    """Return whether an expression is always the same: `len("four")`, `[4, 2]`."""
    names = (node.id for node in ast.walk(value) if isinstance(node, ast.Name))
    return all(hasattr(builtins, name) for name in names)


def _is_seed_text(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Constant)
        and isinstance(value.value, str)
        and re.fullmatch(r"-{0,2}[\w-]+", value.value) is not None
        and is_seed_name(value.value)
    )


def _defaults(node: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    positional = [*node.posonlyargs, *node.args]
    yield from zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True)
    for argument, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        if default is not None:
            yield argument, default


def _name(expression: ast.expr) -> str:
    if isinstance(expression, ast.Name):
        return expression.id
    return expression.attr if isinstance(expression, ast.Attribute) else ""
