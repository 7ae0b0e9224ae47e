"""docs/python.md: its snippets run, and it lists what `treewright` exports, all of it."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import treewright as package
from tests.here import Program

PAGE = (Path(__file__).parents[2] / "docs/python.md").read_text("utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


def test_the_page_lists_what_is_exported_and_nothing_else() -> None:
    listed = re.findall(r"^\| `(\w+)` \| [^`]", PAGE, re.M)
    assert sorted(listed) == sorted(package.__all__)
    assert set(package.__all__) <= set(dir(package))


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(package.__file__).read_text("utf-8"))
    (typed, *_) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname or alias.name: getattr(importlib.import_module(node.module or ""), alias.name)
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {
        name: getattr(package, name) for name in package.__all__ if name != "__version__"
    }


@pytest.mark.xdist_group("lean-session")
def test_the_snippets_run_one_after_the_other(
    treewright_here: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In one directory, as a notebook would."""
    assert SNIPPETS
    monkeypatch.chdir(tmp_path)
    for snippet in SNIPPETS:
        exec(compile(snippet, "docs/python.md", "exec"), {"__name__": "snippet"})
    assert capsys.readouterr().out.startswith("True")


def test_importing_it_imports_little() -> None:
    heavy = ("numpy", "msgspec", "click", "asyncio", "sqlite3", "treewright.kernel")
    code = f"import sys, treewright; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
