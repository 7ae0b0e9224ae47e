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


LISTED = {
    module: re.findall(r"`(\w+)`", names)
    for module, names in re.findall(r"^\| `(treewright\.[\w.]+)` \| (.*?) \|", PAGE, re.M)
}


@pytest.mark.parametrize("module", LISTED)
def test_the_page_lists_exactly_the_exports_of_a_package(module: str) -> None:
    found = importlib.import_module(module)
    assert hasattr(found, "__path__"), "a module inside a package is private"
    assert sorted(LISTED[module]) == sorted(found.__all__)
    for name in LISTED[module]:
        assert getattr(found, name) is not None
    with pytest.raises(AttributeError):
        _ = found.no_such_name


def test_pages_import_only_listed_names() -> None:
    # names.md translates names of the specification; most of the translations are private.
    for path in DOCS.glob("*.md"):
        for module, name in taught(path) if path.name != "names.md" else ():
            parent, _, last = module.rpartition(".")
            is_name = name in LISTED.get(module, ()) or last in LISTED.get(parent, ())
            is_name = is_name or module.split(".")[1] in package.__all__
            assert is_name or (module in LISTED and not name), f"{path.name}: {module} {name}"


def test_snippets_import_only_exports_of_the_package() -> None:
    for path in (*DOCS.glob("*.md"), DOCS.parent / "README.md"):
        for snippet in snippets(path):
            code = re.sub(r"^(from|import) .*", "", snippet, flags=re.M)
            assert set(re.findall(r"\btreewright\.(\w+)", code)) <= set(package.__all__), path.name


@pytest.mark.parametrize("module", ["treewright", *LISTED])
def test_type_checkers_see_the_same_names(module: str) -> None:
    found = importlib.import_module(module)
    tree = ast.parse(Path(found.__file__ or "").read_text("utf-8"))
    typed = [node.body for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname or alias.name: getattr(importlib.import_module(node.module or ""), alias.name)
        for node in (typed[0] if typed else tree.body)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    names = [name for name in found.__all__ if name != "__version__"]
    assert seen == {name: getattr(found, name) for name in names}


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
