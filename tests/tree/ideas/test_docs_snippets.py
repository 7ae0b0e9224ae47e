"""What docs/ideas.md and docs/agents.md show must work as shown."""

from __future__ import annotations

import shlex
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from treewright.tree.agents import prompts
from treewright.tree.agents.offline_agents import load_script
from treewright.tree.agents.reply_edits import Replacement, parse_edits
from treewright.tree.config import CommandIdeas, Config
from treewright.tree.ideas.idea_text import blocks, language, patches
from treewright.tree.ideas.source_factory import make_source

DOCS = Path(__file__).parents[3] / "docs"
REQUIRED = {
    "baseline_csv": "b.csv",
    "sweep": {"command": "true"},
    "metrics": [{"name": "loss", "direction": "minimize", "primary": True}],
    "ideas": [{"source": "directory", "path": "ideas"}],
}


def snippets(page: str, wanted: str) -> list[str]:
    found = blocks((DOCS / page).read_text(encoding="utf-8"))
    return [block.body for block in found if language(block) == wanted]


@pytest.mark.parametrize("page", ["ideas.md", "agents.md"])
def test_configuration_snippets_are_valid(page: str):
    shown = snippets(page, "toml")
    assert len(shown) >= 5
    for snippet in shown:
        msgspec.convert(REQUIRED | tomllib.loads(snippet), type=Config)


def test_the_generator_runs(make_context, tmp_path: Path):
    (code,) = snippets("ideas.md", "python")
    script = tmp_path / "generate.py"
    script.write_text(code)
    source = make_source(CommandIdeas(command=shlex.join([sys.executable, str(script)])))
    titles = [idea.text.splitlines()[0] for idea in source.propose(make_context(), ()).ideas]
    assert titles == [f"# Variant {number}" for number in range(5)]


def test_the_script_the_edit_and_the_idea_are_read(tmp_path: Path):
    (script,) = snippets("agents.md", "json")
    (tmp_path / "s.json").write_text(script)
    assert len(load_script(tmp_path / "s.json")) == 3
    (edit,) = snippets("agents.md", "text")
    assert parse_edits(edit).edits == (Replacement("src/model.py", "RATE = 0.1\n", "RATE = 0.2\n"),)
    (idea,) = snippets("ideas.md", "markdown")
    assert len(patches(idea)) == 1


def test_the_built_in_reply_format_is_the_one_that_is_read():
    edits = parse_edits(prompts.load_builtin("edit_in_reply")).edits
    assert [edit.path for edit in edits] == ["path/to/file.py", "path/to/file.py"]
