"""docs/python.md: its snippets run, and it lists every export of `treewright`."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import treewright as package
from tests.here import Program
from tests.toy import ToyRepository

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "python.md").read_text("utf-8")


def snippets(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)


SNIPPETS = snippets(DOCS / "python.md")


def test_the_page_lists_exactly_the_exports() -> None:
    listed = re.findall(r"^\| `(\w+)` \| [^`]", PAGE, re.M)
    assert sorted(listed) == sorted(package.__all__)
    assert dir(package) == sorted(package.__all__)


def taught(path: Path) -> Iterator[tuple[str, str]]:
    """Return every name inside the package that a page imports or mentions, with its module."""
    for snippet in snippets(path):
        for node in ast.walk(ast.parse(snippet)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("treewright."):
                yield from ((node.module or "", alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((a.name, "") for a in node.names if a.name.startswith("treewright."))
    for name in re.findall(r"`(treewright(?:\.\w+){2,})", path.read_text("utf-8")):
        module, _, attribute = name.rpartition(".")
        yield (module, attribute) if attribute[0].isupper() else (name, "")


def test_pages_import_only_public_or_listed_names() -> None:
    listed: set[tuple[str, str]] = set()
    for module, names in re.findall(r"^\| `(treewright\.[\w.]+)` \| (.*?) \|", PAGE, re.M):
        listed |= {(module, name) for name in re.findall(r"`(\w+)`", names) or [""]}
    # names.md translates names of the specification; most of the translations are private.
    pages = [path for path in DOCS.glob("*.md") if path.name not in ("python.md", "names.md")]
    assert {pair for path in pages for pair in taught(path)} == listed
    for module, name in listed:
        exec(f"from {module} import {name or '*'}", {})


def test_snippets_import_only_exports_of_the_package() -> None:
    for path in (*DOCS.glob("*.md"), DOCS.parent / "README.md"):
        for snippet in snippets(path):
            code = re.sub(r"^(from|import) .*", "", snippet, flags=re.M)
            assert set(re.findall(r"\btreewright\.(\w+)", code)) <= set(package.__all__), path.name


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
def test_the_snippets_run_in_order(
    treewright_here: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They run in one directory, as in a notebook."""
    assert SNIPPETS
    ToyRepository.create(tmp_path / "my-project")
    monkeypatch.chdir(tmp_path)
    for snippet in SNIPPETS:
        exec(compile(snippet, "docs/python.md", "exec"), {"__name__": "snippet"})
    out = capsys.readouterr().out
    assert out.startswith("no_new_ideas ")
    assert "\nTrue " in out


def test_importing_treewright_imports_few_modules() -> None:
    heavy = ("numpy", "msgspec", "click", "asyncio", "sqlite3", "treewright.kernel")
    code = f"import sys, treewright; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
