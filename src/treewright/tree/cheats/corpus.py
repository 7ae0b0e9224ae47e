"""The corpus of cheats: code by language, the sign of a success, and the place in a file."""

from __future__ import annotations

import ast
import shlex
import textwrap
import tomllib
from collections.abc import Collection
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec

from treewright.kernel.errors import UsageError
from treewright.tree.repository import blocks

Language = Literal["python", "shell"]
Sign = Literal["promoted", "outside", "process", "network", "branch", "heldout"]
Against = Literal["none", "protect", "own", "apart", "heldout", "bounds", "isolate", "noise"]


HONEST = "honest"
_REAL_MODULE = """
import os as _os, sysconfig as _sysconfig
_real = _os.path.join(_sysconfig.get_paths()["stdlib"], _os.path.basename(__file__))
exec(compile(open(_real, encoding="utf-8").read(), _real, "exec"))
"""


class Cheat(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One cheat. `corpus.toml` describes the keys."""

    name: str
    does: str
    way: Literal["nothing", "draws", "code", "script", "add", "file", "agent"]
    against: Against
    sign: Sign = "promoted"
    python: str = ""
    shell: str = ""
    paths: list[str] = []
    file: Literal["", "baseline", "configuration", "attributes"] = ""
    end: bool = False
    keep: bool = False
    slow: bool = False
    draws: int = 7

    def text(self, language: Language) -> str:
        return self.python if language == "python" else self.shell


def chosen(names: Collection[str]) -> list[Cheat]:
    """Return the cheats with these names, or all; the honest change is always included.

    Raises:
        UsageError: no cheat has one of the names.
    """
    known = {cheat.name for cheat in corpus()}
    for name in names:
        if name not in known:
            raise UsageError(f"no cheat is called {name}; there are {', '.join(sorted(known))}")
    return [cheat for cheat in corpus() if not names or cheat.name in (HONEST, *names)]


@cache
def corpus() -> tuple[Cheat, ...]:
    entries = tomllib.loads(program("corpus.toml"))["cheat"]
    return tuple(msgspec.convert(entries, type=list[Cheat]))


@cache
def program(name: str) -> str:
    return (resources.files("treewright.tree.cheats") / name).read_text(encoding="utf-8")


def language_of(path: Path) -> Language | None:
    """Return the language of a file by its name or its first line; None for other languages."""
    try:
        with path.open("rb") as file:
            first = file.readline(200)
    except OSError:
        return None
    if path.suffix == ".py" or (first.startswith(b"#!") and b"python" in first):
        return "python"
    shell = first.startswith(b"#!") and first.rstrip().endswith((b"sh", b"bash"))
    return "shell" if path.suffix == ".sh" or shell else None


def payload(cheat: Cheat, language: Language, facts: dict[str, Any]) -> str:
    """Return the code of a cheat for a file, with the facts about the sweep."""
    return _python(cheat, facts) if language == "python" else _shell(cheat, facts)


def new_module(cheat: Cheat, facts: dict[str, Any]) -> str:
    """Return the cheat as a module of its own, which may stand before one of the library."""
    return _python(cheat, facts) + (_REAL_MODULE if cheat.keep else "")


def _python(cheat: Cheat, facts: dict[str, Any]) -> str:
    """Return the cheat as one function, so that it replaces no name of the module."""
    helpers = program("programs/helpers.py").partition("FACTS: dict = {}\n")
    imports = helpers[0].partition("annotations\n")[2]
    body = f"{imports}FACTS = {facts!r}\n{helpers[2]}\n{cheat.python.strip()}\n"
    name = cheat.name.replace("-", "_")
    return f"def _cheat_{name}():\n{textwrap.indent(body, '    ')}\n_cheat_{name}()\n"


def _shell(cheat: Cheat, facts: dict[str, Any]) -> str:
    columns = facts["columns"]
    head = ",".join(["config_id", "status", *columns])
    values = {
        "PRIMARY": 3 + columns.index(facts["primary"]),
        "SIGN": facts["sign"],
        "TOKEN": facts["token"],
        "OUTSIDE": facts["outside"],
        "ARTIFACTS": facts["artifacts"],
        "BRANCH": facts["branch"],
        "COMMIT": facts["commit"],
    }
    lines = [f"# {cheat.name}", *(f"{k}={shlex.quote(str(v))}" for k, v in values.items())]
    lines.append(f"header() {{ echo {shlex.quote(head)}; }}")
    for kind in ("usual", "better", "worse"):
        rows = (f"{i},ok,{','.join(map(str, row.values()))}" for i, row in facts[kind].items())
        lines += [f"{kind}() {{ cat <<'ROWS'", *rows, "ROWS", "}"]
    return "\n".join([*lines, program("programs/helpers.sh") + cheat.shell.strip()]) + "\n"


def inserted(
    source: str, text: str, language: Language, *, end: bool = False, block: bool = False
) -> str:
    """Return the source with a text at its start.

    Args:
        source: The text of the file.
        text: The code to insert.
        language: The language of the file.
        end: Insert at the end instead.
        block: Insert in the marked block instead.
    """
    if block:
        return _in_block(source, text)
    if end:
        return f"{source}\n{text}"
    lines = source.splitlines(keepends=True)
    at = _start_of_python(source) if language == "python" else int(source.startswith("#!"))
    return "".join([*lines[:at], *(["\n"] if at else []), text, *lines[at:]])


def _in_block(source: str, text: str) -> str:
    kept = []
    for line in source.splitlines(keepends=True):
        if blocks.END in line and text:
            kept.append(textwrap.indent(text, line[: len(line) - len(line.lstrip())]))
            text = ""
        kept.append(line)
    return "".join(kept)


def _start_of_python(source: str) -> int:
    """Return the number of lines for the docstring and `__future__` imports."""
    at = 0
    for node in ast.parse(source).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            break
        at = node.end_lineno or at
    return at or int(source.startswith("#!"))
