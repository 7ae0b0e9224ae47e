"""The packages that a sweep imports, tried with the Python that runs it."""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 120.0
_MARK = "treewright-import\t"
_PROGRAM = f"""\
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        print({_MARK!r} + name, type(error).__name__ + ": " + str(error), sep="\\t", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Imports:
    """The file that needs each package, and the error of each package that fails to import."""

    python: str
    packages: dict[str, str]
    failed: dict[str, str]


def try_imports(repo: Path, command: str) -> Imports | None:
    """Import the packages of a command `python [options] script.py` in a process of that Python.

    Modules of the repository are read for their imports, and not imported.

    Returns:
        The imports, or None for another kind of command.

    Raises:
        subprocess.TimeoutExpired: The imports take too long.
        OSError: The Python cannot be started.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    variables: dict[str, str] = {}
    while words and "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    if not words or not Path(words[0]).name.startswith("python"):
        return None
    options = []
    for word in words[1:]:
        if not word.startswith("-") or word in ("-m", "-c"):
            break
        options.append(word)
    rest = words[1 + len(options) :]
    if not rest or not rest[0].endswith(".py") or not (repo / rest[0]).is_file():
        return None
    packages = _packages(repo, repo / rest[0])
    done = subprocess.run(
        [words[0], *options, "-c", _PROGRAM, *packages],
        cwd=repo,
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS,
        check=False,
    )
    failed = {}
    for line in done.stdout.splitlines():
        if line.startswith(_MARK):
            name, _, error = line.removeprefix(_MARK).partition("\t")
            failed[name] = error
    return Imports(words[0], packages, failed)


def _packages(repo: Path, script: Path) -> dict[str, str]:
    """Return the packages that a script, its modules and the scripts it names import."""
    found: dict[str, str] = {}
    waiting, seen = [script], {script}
    while waiting:
        path = waiting.pop()
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        near: list[Path] = []
        for name in _imported(tree.body):
            top = name.partition(".")[0]
            places = [base / top for base in (path.parent, script.parent, repo, repo / "src")]
            files = [place.with_suffix(".py") for place in places]
            files += [place / "__init__.py" for place in places]
            own = [file for file in files if file.is_file()]
            near += own[:1]
            if not own and top not in sys.stdlib_module_names:
                found.setdefault(top, path.relative_to(repo).as_posix())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = path.parent / node.value
                if node.value.endswith(".py") and len(node.value) < 255 and named.is_file():
                    near.append(named)
        new = [file for file in near if file not in seen and file.is_relative_to(repo)]
        seen.update(new)
        waiting += new
    return found


def _imported(body: list[ast.stmt]) -> Iterator[str]:
    """Yield modules imported at the top level, outside of functions and `try`."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
