"""A path inside a run directory is spelled in one place; everything else asks it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import treewright
from treewright.kernel.storage import run_directory
from treewright.orchestrator.ledger.schema import LEDGER
from treewright.proving import layout as proof_layout
from treewright.tree.records import layout as tree_layout

SOURCE = Path(treewright.__file__).parent
HOMES = {
    "kernel/storage/run_directory.py",
    "tree/records/layout.py",
    "proving/layout.py",
    "cellview/experiment/layout.py",
    "orchestrator/background.py",  # the only module that uses this directory
}
SHARED = {"report", "artifacts", "proved", "cluster", "preflight", "lease", "cand", "eval"}
"""Words with other meanings; they are searched for as parts of paths."""

NO_PATHS = {
    ("dashboard/app.py", "/experiment/"),  # the address of a page
    ("mcp_server/run_tools.py", "tree_runs"),  # the name of a tool
    ("cli/options.py", ".treewright/ledger.db"),  # a default in the help
}


def names() -> set[str]:
    found = {run_directory.STATE_DIR}
    for module in (tree_layout, proof_layout):
        found |= {v for k, v in vars(module).items() if k.isupper() and isinstance(v, str)}
    return found - SHARED


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Literals of a module, also the fixed parts of f-strings; also docstrings."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_only_the_layouts_spell_paths_of_a_run() -> None:
    pieces = ("/experiment", "eval/", "wt/", "node_ideas/", ".treewright/", "refs/heads/treewright")
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        # lean writes its own files; `init` writes files of the user.
        if place in HOMES or place.startswith(("lean/", "tree/starter/")):
            continue
        for line, text in strings(path):
            if (place, text) in NO_PATHS:
                continue
            if " " not in text and (text in names() or text.startswith(pieces)):
                wrong.append(f"{place}:{line}: {text!r}")
    assert not wrong


def test_only_the_layouts_spell_names_of_pictures() -> None:
    wrong = [
        f"{path.relative_to(SOURCE).as_posix()}:{line}: {text!r}"
        for package in ("tree", "proving", "cellview")
        for path in sorted((SOURCE / package).rglob("*.py"))
        if path.relative_to(SOURCE).as_posix() not in HOMES
        for line, text in strings(path)
        if text.removesuffix(")").endswith(".svg") and text != "*.svg"
    ]
    assert not wrong


def test_names_on_disk_are_the_documented_ones() -> None:
    assert tree_layout.experiment("e000001") == "eval/e000001/experiment"
    assert tree_layout.summary("eval/e1/experiment") == "eval/e1/experiment/summary.json"
    assert tree_layout.worktree("n0001") == "wt/n0001"
    assert (
        f"{tree_layout.ideas('n0001')}/{tree_layout.idea_file(7)}" == "node_ideas/n0001/idea_007.md"
    )
    assert tree_layout.runs_directory(Path("r")) == Path("r/.treewright/tree_runs")
    assert tree_layout.results("e1") == "e1_results.csv"
    assert tree_layout.heldout("n1") == "n1_heldout"
    assert Path(".treewright/proof_runs") == proof_layout.RUNS
    assert (tree_layout.LEASE, proof_layout.LEASE, LEDGER) == ("lease", "lease", "ledger.db")
