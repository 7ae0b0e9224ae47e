"""What people see of it: the page's snippets, the example, the command."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import treewright as package

ROOT = Path(__file__).parents[2]
SNIPPETS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/search.md").read_text(), re.M | re.S)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_the_snippets_of_the_page_run_and_run_again(snippet: str, tmp_path: Path) -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", snippet],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_the_policy_of_the_page_is_one_after_a_registration(tmp_path: Path) -> None:
    (snippet,) = [text for text in SNIPPETS if "(Policy, " in text]
    info = tmp_path / "my_package-1.dist-info"
    info.mkdir()
    (tmp_path / "my_package.py").write_text(snippet)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    page = (ROOT / "docs/search.md").read_text()
    (group,) = re.findall(r'^\[project\.entry-points\."(.*)"\]$', page, re.M)
    (entry,) = re.findall(r"^(\w+ = )\"(my_package:\w+)\"$", page, re.M)
    (info / "entry_points.txt").write_text(f"[{group}]\n{''.join(entry)}\n")
    program = (
        "import treewright\n"
        "with treewright.open_search('s', policy='tournament', budget=9) as s:\n"
        "    s.run(lambda task: task.seed % 10)\n"
        "print(s.evaluations, treewright.validate_search('s'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "9 []\n"


def test_the_example_finds_the_formula(tmp_path: Path, treewright) -> None:
    shutil.copy(ROOT / "examples/programs.py", tmp_path)
    done = subprocess.run(
        [sys.executable, "programs.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("600 programs")
    assert "(-0.000)" in done.stdout
    shown = treewright("search", "show", "programs.search", "--json")
    described = json.loads(shown.stdout)
    assert described["evaluations"] == 600
    assert described["can_be_repeated"] is True
    assert "best-first" in treewright("search", "show", "programs.search").stdout
    assert treewright("search", "validate", "programs.search").returncode == 0


def test_the_command_reports_problems(tmp_path: Path, treewright) -> None:
    missing = treewright("search", "show", "nowhere")
    assert missing.returncode == 2
    assert missing.stderr.strip().endswith("no search at nowhere")
    with package.open_search(tmp_path / "s", order="live", budget=8) as search:
        search.run(lambda task: float(task.number))
    assert "cannot be repeated" in treewright("search", "show", "s").stdout
    journal = tmp_path / "s" / "search.jsonl"
    journal.write_text(journal.read_text().replace('"number":5,"parent":', '"number":5,"parent":1'))
    wrong = treewright("search", "validate", "s")
    assert wrong.returncode == 1
    assert "chosen 5" in wrong.stderr


def test_policies_are_listed_with_their_settings(treewright) -> None:
    listed = treewright("search", "policies").stdout
    for name in ("beam", "best-first", "mcts", "ab-mcts", "random"):
        assert re.search(rf"^{name} ", listed, re.M)
    assert "width = 4" in listed


def test_the_public_names_are_there() -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018
