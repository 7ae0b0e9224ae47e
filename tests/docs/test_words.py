"""ARCHITECTURE.md gives each word one meaning: names in the code keep to it.

What is on disk, on a wire or in a certificate keeps its name; the code around it
need not.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import treewright

SOURCES = Path(treewright.__file__).parent
ELSEWHERE = {
    "policy": (
        "kernel",
        "lean",
        "llm",
        "premises",
        "dashboard/app.py",
        "dashboard/export.py",
        "dashboard/guard.py",
        "dashboard/server.py",
    ),
    "cell": ("cellview/experiment", "kernel", "lean", "llm", "search", "tree"),
    "damage": ("kernel", "lean", "llm", "orchestrator", "search", "tree"),
    "replay": ("kernel", "orchestrator", "search", "tree"),
}
"""Packages and files in which a word would mean something else."""
ON_A_WIRE = {("lean/session/protocol.py", "policy")}


def names_in(path: Path) -> set[str]:
    """What is defined, passed or assigned there, and not what is only used."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name.lower())
            case ast.arg():
                found.add(node.arg)
            case ast.Name(ctx=ast.Store()):
                found.add(node.id)
            case _:
                pass
    return found


@pytest.mark.parametrize("word", ELSEWHERE)
def test_a_word_is_not_used_for_something_else(word: str) -> None:
    wrong = [
        str(path.relative_to(SOURCES))
        for package in ELSEWHERE[word]
        for path in sorted((SOURCES / package).rglob("*.py")) or [SOURCES / package]
        if word in names_in(path)
        if (path.relative_to(SOURCES).as_posix(), word) not in ON_A_WIRE
    ]
    assert not wrong
