"""Commands read flags, call one engine and print: they own no loop and write no file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import treewright.cli

ASKED_FOR = {"init", "verify"}
"""They write one file, which the user named or which is all that the command is for."""
MODULES = [
    path
    for path in sorted(Path(treewright.cli.__file__).parent.glob("*.py"))
    if path.stem not in ASKED_FOR
]
WRITERS = {
    "atomic", "write_report", "write_results", "write_summary", "write_result", "write_patch",
    "write_in_place",
}  # fmt: skip
BEGUN_ONCE = {"HostSession", "Replayer", "Proving"}
"""Objects that a command may create once, but not in a loop."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_command_neither_owns_a_loop_nor_writes_files(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    loops = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.While)]
    assert not loops, "step until finished belongs to the engine"
    begun = [
        call.lineno
        for part in ast.walk(tree)
        if isinstance(part, ast.For | ast.ClassDef)
        for statement in part.body
        for call in ast.walk(statement)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if call.func.id in BEGUN_ONCE
    ]
    assert not begun, "one after the other, and when another process is needed, is the engine's"
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom | ast.Import)
        for alias in node.names
    }
    assert not imported & WRITERS
    written = [n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    assert not {"write_bytes", "write_text", *WRITERS} & set(written)
