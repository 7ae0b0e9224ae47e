"""ARCHITECTURE.md gives each word one meaning, and names in the code keep to it.

Names on disk, on a wire or in a certificate are exempt; the code around them need not be."""

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
    """Return the names that a file defines, passes or assigns, without those it only uses."""
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
def test_a_word_has_only_its_own_meaning(word: str) -> None:
    wrong = [
        str(path.relative_to(SOURCES))
        for package in ELSEWHERE[word]
        for path in sorted((SOURCES / package).rglob("*.py")) or [SOURCES / package]
        if word in names_in(path)
        if (path.relative_to(SOURCES).as_posix(), word) not in ON_A_WIRE
    ]
    assert not wrong
