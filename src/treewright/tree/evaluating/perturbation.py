"""Perturbing a checkout: its Python code draws random numbers and does nothing with them.

Such a change affects the code only through the random numbers that come after it.
A number that the change moves depends on a hidden random stream, also where the program or its
evaluator seeds the stream itself: the draws come after the seeding as well.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.kernel.storage import untrusted
from treewright.tree.config import Config
from treewright.tree.guard import protected_files
from treewright.tree.repository import blocks
from treewright.tree.repository.git import git

CONTROL = 0
"""Draws of the control: the same text is inserted, and no number is drawn."""
_MOST_FILES = 500
_MOST_CALLS = 1000
_NAME = "_treewright_draw"
_SEEDERS = frozenset({
    "seed", "default_rng", "RandomState", "Random", "Generator", "SeedSequence", "manual_seed",
    "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "set_seed", "seed_everything",
})  # fmt: skip
"""Calls after which a stream of random numbers begins."""
_DRAW = f"""\
def {_NAME}(*generators, left=[{_MOST_CALLS}]):
    # PADDING
    import sys
    if left[0] <= 0:
        return
    left[0] -= 1
    modules = [sys.modules.get(name) for name in ("random", "numpy.random")]
    known = ("Random", "RandomState", "Generator")
    given = [each for each in generators if type(each).__name__ in known]
    for _ in range(DRAWS):
        for each in (*filter(None, modules), *given):
            each.random()
    torch = sys.modules.get("torch")
    if DRAWS and hasattr(torch, "rand"):
        torch.rand(DRAWS)
"""


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
            file.write_bytes(found.encode("utf-8"))
        except (OSError, UnicodeDecodeError, TreewrightError):
            return False
        return True


def perturb(source: str, draws: int, *, block: bool = False) -> str | None:
    """Return the source with draws of random numbers, or None where no place for them is found.

    Numbers are drawn at the beginning of the module and of each function, and after each statement
    that seeds a generator. With `block`, only inside the marked blocks.
    """
    lines = source.splitlines(keepends=True)
    if not lines or len(lines) != source.count("\n") + (not source.endswith("\n")):
        return None  # other line separators than newlines: line numbers would not fit
    lines[-1] = lines[-1].rstrip("\n") + "\n"
    try:
        tree = ast.parse(source)
        places = [place for place in _places(tree, lines) if not block or place.is_inside(source)]
        first = next((place for place in places if place.is_top_level), None)
        if first is None:
            return None
        for place in sorted(places, key=lambda place: place.line, reverse=True):
            lines.insert(place.line - 1, place.text)
            if place is first:
                # Python reuses the bytecode of a file with the same size and second.
                drawing = _DRAW.replace("PADDING", "." * (draws + 1))
                lines.insert(place.line - 1, drawing.replace("DRAWS", str(draws)))
        text = "".join(lines)
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return text


@dataclass(frozen=True, slots=True)
class _Place:
    """A line before which numbers are drawn, its indentation, and generators to draw from."""

    line: int
    indentation: str
    generators: Sequence[str] = ()
    is_top_level: bool = False

    @property
    def text(self) -> str:
        return f"{self.indentation}{_NAME}({', '.join(self.generators)})\n"

    def is_inside(self, source: str) -> bool:
        before = source.splitlines(keepends=True)[: self.line - 1]
        offset = len("".join(before).encode())
        return any(start <= offset <= end for start, end in blocks.spans(source.encode()))


def _places(tree: ast.Module, lines: Sequence[str]) -> Iterator[_Place]:
    for place, statement in enumerate(tree.body):
        is_docstring = (
            place == 0
            and isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
        )
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not is_docstring and not is_future:
            yield _Place(_start(statement), "", is_top_level=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _function_start(node, lines)
        for body in _bodies(node):
            for statement, follower in zip(body, [*body[1:], None], strict=True):
                yield from _after_seeding(statement, follower, lines)


def _function_start(
    node: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str]
) -> Iterator[_Place]:
    has_docstring = ast.get_docstring(node, clean=False) is not None
    body = node.body[1:] if has_docstring else node.body
    if not body:
        return
    indentation = lines[_start(body[0]) - 1][: body[0].col_offset]
    if not indentation.strip():
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        yield _Place(_start(body[0]), indentation, [argument.arg for argument in every])


def _after_seeding(
    statement: ast.stmt, follower: ast.stmt | None, lines: Sequence[str]
) -> Iterator[_Place]:
    if not isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
        return
    end = statement.end_lineno or statement.lineno
    indentation = lines[statement.lineno - 1][: statement.col_offset]
    if indentation.strip() or (follower is not None and _start(follower) <= end):
        return
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    if any(_called_name(call) in _SEEDERS for call in calls):
        targets = [] if isinstance(statement, ast.Expr) else _targets(statement)
        kinds = (ast.Name, ast.Attribute)
        names = [ast.unparse(target) for target in targets if isinstance(target, kinds)]
        yield _Place(end + 1, indentation, names)


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _called_name(call: ast.Call) -> str:
    called = call.func
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield body


def _start(statement: ast.stmt) -> int:
    """Return the first line of a statement with its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])
