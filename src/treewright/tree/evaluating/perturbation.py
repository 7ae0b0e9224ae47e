"""Perturbing a checkout: its Python code draws random numbers and does nothing with them.

Such a change affects the code only through the random numbers that come after it.
A number that the change moves depends on a hidden random stream, also where the program or its
evaluator seeds the stream itself: the draws come after the seeding as well.
"""

from __future__ import annotations

import ast
import itertools
import os
import shlex
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.kernel.storage import untrusted
from treewright.tree.config import Config
from treewright.tree.guard import protected_files
from treewright.tree.repository import blocks, seeds
from treewright.tree.repository.git import git

CONTROL = 0
"""Draws of the control: the same text is inserted, and no number is drawn."""
_MOST_FILES = 500
_MOST_CALLS = 1000
_NAME = "_treewright_draw"
_SEEDERS = frozenset({"Generator", "jumped", "seed_everything", "set_state", "setstate", "spawn"})
"""Calls after which a stream of random numbers begins, besides those of `repository.seeds`."""
_EARLIEST = 1_000_000_000
_DRAW = f"""\
def {_NAME}(place, *given, left={{}}):
    import contextlib, itertools, sys
    calls = left[place] = left.get(place, 0) + 1
    if calls > {_MOST_CALLS}:
        return given[0] if given else None
    torch = sys.modules.get("torch")
    found = [m for m in map(sys.modules.get, ("random", "numpy.random")) if m is not None]
    of_torch = [None] if hasattr(torch, "rand") else []
    # Generators that the code can reach from its arguments and the names of its module.
    pending = [*given, *(list(globals().values()) if calls <= 20 else ())]
    for depth in range(3 if calls <= 100 else 1):
        inside = []
        for each in pending:
            classes = type(each).__mro__
            kinds = {{(str(k.__module__).partition(".")[0], k.__name__) for k in classes}}
            if ("torch", "Generator") in kinds:
                of_torch.append(each)
            elif kinds & {{("random", "Random"), ("numpy", "RandomState"), ("numpy", "Generator")}}:
                found.append(each)
            elif kinds & {{("builtins", name) for name in ("list", "tuple", "set", "frozenset")}}:
                inside.extend(itertools.islice(each, 100))
            elif ("builtins", "dict") in kinds:
                inside.extend(itertools.islice(each.values(), 100))
            elif ("builtins", "module") not in kinds:
                with contextlib.suppress(Exception):
                    inside.append(object.__getattribute__(each, "__self__"))
                with contextlib.suppress(Exception):
                    held = object.__getattribute__(each, "__dict__")
                    inside.extend(itertools.islice(held.values(), 100))
        pending = inside[:300]
    for _ in range(DRAWS):
        for each in found:
            with contextlib.suppress(Exception):
                each.random()
        for each in of_torch:
            torch.rand(1, generator=each, device=None if each is None else each.device)
    return given[0] if given else None
"""
"""`DRAWS` has the same width for every perturbation: the text has the same size as the control."""


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What to insert where. `draws` numbers are drawn at each place, CONTROL draws none."""

    config: Config
    protected: Sequence[str]
    draws: int = 7

    def has_code(self, repo: Path) -> bool:
        """Return whether there are files that could be perturbed."""
        return bool(self._paths(repo))

    def apply(self, worktree: Path) -> list[str]:
        """Rewrite the Python files that a candidate may change; return their paths.

        An empty list says that there is no Python code to perturb.
        """
        return [path for path in self._paths(worktree) if self._rewrite(worktree / path, path)]

    def _paths(self, worktree: Path) -> list[str]:
        if self.config.editable_blocks:
            return [path for path in self.config.editable_blocks if path.endswith(".py")]
        listed = git(worktree, "ls-files", "-z", "--", "*.py").split("\0")
        deciding = {*protected_files.match_protected(listed, self.protected), *self._script()}
        return [path for path in listed if path and path not in deciding][:_MOST_FILES]

    def _script(self) -> list[str]:
        try:
            return shlex.split(self.config.sweep.command)
        except ValueError:
            return []

    def _rewrite(self, file: Path, path: str) -> bool:
        try:
            source = untrusted.read(file, untrusted.LARGEST_TEXT).decode("utf-8")
            found = perturb(source, self.draws, block=path in self.config.editable_blocks)
            if found is None:
                return False
            write(file, found)
        except (OSError, UnicodeDecodeError, TreewrightError):
            return False
        return True


def write(file: Path, source: str) -> None:
    """Write perturbed source. Its modification time follows from its text.

    Python reuses the bytecode of a file that has the same size and time.
    """
    data = source.encode("utf-8")
    file.write_bytes(data)
    time = _EARLIEST + zlib.crc32(data) % _EARLIEST // 2
    os.utime(file, (time, time))


def perturb(source: str, draws: int, *, block: bool = False) -> str | None:
    """Return the source with draws of random numbers, or None where no place for them is found.

    Numbers are drawn before each statement of the module, at the beginning of each function, and
    after each call that may seed a generator: calls with such names, and calls whose value is not
    used. With `block`, only inside the marked blocks.
    """
    if len(source.splitlines()) != source.count("\n") + (not source.endswith("\n")):
        return None  # other line separators than newlines: line numbers would not fit
    try:
        tree = ast.parse(source)
        first = next(_statements(tree), None)
        text = _Text(source, block, _aliases(tree))
        for statement in _statements(tree):
            text.draw_before(statement, ())
        for node in _outside_strings(tree):
            text.draw_in(node)
        if first is None or not text.inserts:
            return None
        drawing = _DRAW.replace("DRAWS", f"{draws:2}")
        perturbed = text.with_inserts(text.line_start(_start(first)), drawing)
        ast.parse(perturbed)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return perturbed


class _Text:
    """A source with what is to be inserted, by byte offset."""

    def __init__(self, source: str, block: bool, seeders: Collection[str]) -> None:
        self._seeders = seeders
        self._data = source.encode("utf-8")
        self._lines = self._data.split(b"\n")
        self._starts = [0, *itertools.accumulate(len(line) + 1 for line in self._lines)]
        self._spans = list(blocks.spans(self._data)) if block else [(0, len(self._data))]
        self._places = 0
        self.inserts: list[tuple[int, str]] = []

    def line_start(self, line: int) -> int:
        return self._starts[line - 1]

    def draw_in(self, node: ast.AST) -> None:
        """Insert draws at the beginning of a function, or after a call that may seed."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                has_docstring = ast.get_docstring(node, clean=False) is not None
                body = node.body[1:] if has_docstring else node.body
                inside = [each for each in body if self._is_inside(*self._range(each))]
                if not inside and body:  # a block may be deeper in the function
                    below = (each for each in ast.walk(node) if isinstance(each, ast.stmt))
                    inside = [each for each in below if self._is_inside(*self._range(each))]
                    inside.sort(key=_start)
                if inside:
                    self.draw_before(inside[0], _arguments(node.args))
            case ast.Lambda():
                call = self._call(_arguments(node.args))
                self._wrap(node.body, f"({call}, ", ")[1]")
            case ast.Expr(value=ast.Call() | ast.Await() as value):
                if not self._is_seeder(value):
                    self._wrap(value, f"{_NAME}({self._places + 1}, ", ")")
            case ast.Call() if self._is_seeder(node):
                self._wrap(node, f"{_NAME}({self._places + 1}, ", ")")
            case _:
                pass

    def draw_before(self, statement: ast.stmt, arguments: Sequence[str]) -> None:
        line, start = _start(statement), self._range(statement)[0]
        if not self._is_inside(start, start):
            return
        call = self._call(arguments)
        before = self._data[self.line_start(line) : start]
        is_continued = line > 1 and self._lines[line - 2].endswith(b"\\")
        if before.strip() or is_continued:
            self.inserts.append((start, f"{call}; "))
        else:
            indentation = before.decode("utf-8")
            self.inserts.append((self.line_start(line), f"{indentation}{call}\n"))

    def with_inserts(self, at: int, definition: str) -> str:
        """Return the text with all inserts, and the definition in a line before all others."""
        parts, done = [], 0
        ordered = sorted([(at, definition), *self.inserts], key=lambda each: each[0])
        for offset, text in ordered:
            parts += [self._data[done:offset], text.encode("utf-8")]
            done = offset
        return b"".join([*parts, self._data[done:]]).decode("utf-8")

    def _wrap(self, node: ast.expr, before: str, after: str) -> None:
        start, end = self._range(node)
        if self._is_inside(start, end):
            self._places += 1
            self.inserts += [(start, before), (end, after)]

    def _is_seeder(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Call):
            return False
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        return called in self._seeders or seeds.seeds_random_numbers(node.func)

    def _call(self, arguments: Sequence[str]) -> str:
        self._places += 1
        return f"{_NAME}({', '.join([str(self._places), 'None', *arguments])})"

    def _range(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        line = _start(node) if isinstance(node, ast.stmt) else node.lineno
        start = self.line_start(line) + node.col_offset
        return start, self.line_start(node.end_lineno or line) + (node.end_col_offset or 0)

    def _is_inside(self, start: int, end: int) -> bool:
        return any(first <= start and end <= last for first, last in self._spans)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements of a module, except its docstring and imports from the future."""
    for place, statement in enumerate(tree.body):
        is_docstring = (
            place == 0
            and isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
        )
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not is_docstring and not is_future:
            yield statement


def _outside_strings(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes except those inside f-strings, whose positions may be wrong."""
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _outside_strings(child)


def _arguments(arguments: ast.arguments) -> list[str]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [each.arg for each in every]


def _aliases(tree: ast.Module) -> frozenset[str]:
    """Return the names of calls that seed, with those that imports of the file give them."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return _SEEDERS | {
        each.asname
        for node in imports
        for each in node.names
        if each.asname
        and (each.name in _SEEDERS or seeds.seeds_random_numbers(ast.Name(each.name)))
    }


def _start(statement: ast.stmt) -> int:
    """Return the first line of a statement with its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])
