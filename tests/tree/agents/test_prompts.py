"""Prompts, the files that models see, and the probes of backends."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.llm.endpoints import Step, completion, stand_in
from treewright.tree.agents import prompts, transcript
from treewright.tree.agents.backend import AgentFailure, Role
from treewright.tree.agents.backend_factory import probe_backend
from treewright.tree.agents.implementation import Assignment, implement
from treewright.tree.agents.prompts import PromptTooLong, View, show_files
from treewright.tree.config import (
    AgentsConfig,
    BackendConfig,
    CommandBackend,
    EndpointConfig,
    NoBackend,
    OpenaiBackend,
    PatchBackend,
    ScriptedBackend,
    SweepConfig,
)

names = st.sampled_from(["idea", "plan", "diff", "other"])
pieces = st.one_of(
    names.map(lambda name: "{{" + name + "}}"),
    st.sampled_from(["{", "}", "{{", "}}", "{{ idea }}", "{x}", "{{Idea}}", "\\", "\n", "$1"]),
    st.text(max_size=5),
)


@given(st.lists(pieces, max_size=10), st.text(), st.text())
def test_substitution_replaces_known_names_once_and_nothing_else(parts, idea: str, plan: str):
    """Built twice: as a template, and by hand from its parts."""
    values = {"idea": idea + "{{plan}}", "plan": plan}
    separator = "\x00"  # keeps braces of neighbouring parts from meeting
    template = separator.join(parts)
    expected = separator.join(
        values.get(part[2:-2], part) if part.startswith("{{") and part.endswith("}}") else part
        for part in parts
    )
    assert prompts.substitute(template, values) == expected


def test_builtin_prompts_use_what_they_need():
    for purpose, needed in prompts.REQUIRED.items():
        for name in needed:
            assert prompts.mentions(prompts.load_builtin(purpose), name)
    assert "VERDICT: APPROVE" in prompts.load_builtin("reviewer")


@pytest.mark.parametrize("value", ["short", "1", ""])
def test_short_values_are_not_taken_for_secrets(value: str, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", value)
    assert transcript.redact(f"a {value} b") == f"a {value} b"


def test_secrets_are_found_by_the_name_of_their_variable(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("GH_TOKEN", "ghp-12345678")
    monkeypatch.setenv("GH_TOKEN_LONGER_SECRET", "ghp-12345678-and-more")
    monkeypatch.setenv("ODD_NAME", "tiny")
    transcript.write(tmp_path / "log", "ghp-12345678-and-more ghp-12345678 tiny", "ODD_NAME")
    assert (tmp_path / "log").read_text() == "[redacted] [redacted] [redacted]"


ENDPOINT = EndpointConfig(base_url="http://127.0.0.1:9/v1", model="m", api_key_env="NOT_SET_KEY")


@pytest.mark.parametrize(
    ("role", "config", "ok", "message"),
    [
        ("planner", NoBackend(), True, "left out"),
        ("coder", NoBackend(), False, "cannot be `none`"),
        ("coder", PatchBackend(), True, "applies the patch"),
        ("reviewer", PatchBackend(), False, "only the coder"),
        ("coder", CommandBackend(command=[sys.executable]), True, sys.executable),
        ("coder", CommandBackend(command=["no-such-agent"]), False, "not on PATH"),
        ("coder", CommandBackend(command=["sh"], prompt="no.md"), False, "no.md"),
        ("coder", OpenaiBackend(endpoint=ENDPOINT), False, "NOT_SET_KEY is not set"),
        ("coder", ScriptedBackend(script="good.json"), True, "1 scripted entries"),
        ("coder", ScriptedBackend(script="bad.json"), False, "bad.json"),
        ("coder", ScriptedBackend(script="absent.json"), False, "cannot read"),
    ],
)
def test_probe(role: Role, config: BackendConfig, ok: bool, message: str, tmp_path: Path):
    (tmp_path / "good.json").write_text('[{"role": "coder"}]')
    (tmp_path / "bad.json").write_text('[{"role": "cook"}]')
    found = probe_backend(role, config, tmp_path)
    assert found[0] is ok
    assert message in found[1]
    assert "\n" not in found[1]


def test_probe_with_a_key_does_not_show_it(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("NOT_SET_KEY", "sk-secret-value")
    ok, message = probe_backend("coder", OpenaiBackend(endpoint=ENDPOINT), tmp_path)
    assert ok
    assert "sk-secret" not in message
    assert "NOT_SET_KEY" in message


PROGRAM = "import os\n\n# EVOLVE-BLOCK-START\nRATE = 0.1\n# EVOLVE-BLOCK-END\n\nprint(RATE)\n"
FILES: dict[str, str | bytes] = {
    "task/initial_program.py": PROGRAM,
    "task/evaluator.py": "CORRECT_CONFIG = {'rate': 7}\n",
    "task/config.yaml": "prompt: hello\n",
    "task/helpers.py": "def double(x):\n    return 2 * x\n",
    "measure.py": "SECRET_CONSTANT = 3\n",
    "other.py": "OTHER = 1\n",
}
PROTECTED = ["task/evaluator.py", "task/config.yaml", "task/helpers.py"]


def test_an_editable_block_is_shown_and_nothing_that_is_protected(make_repo):
    repo = make_repo(FILES)
    view = View(PROTECTED, (), ["task/initial_program.py"])
    shown = show_files(repo, "see task/evaluator.py", 10_000, view)
    assert f"task/initial_program.py:\n```\n{PROGRAM}```" in shown
    for hidden in ("CORRECT_CONFIG", "double", "OTHER", "evaluator.py", "measure.py"):
        assert hidden not in shown


def test_protected_files_are_shown_where_they_are_readable(make_repo):
    repo = make_repo(FILES)
    view = View(PROTECTED, ["task/helpers.py"], ["task/initial_program.py"])
    shown = show_files(repo, "", 10_000, view)
    assert "def double" in shown
    assert "CORRECT_CONFIG" not in shown


def test_without_blocks_all_files_but_the_protected_ones_are_shown(make_repo, make_config):
    """The script of the sweep counts as protected, whether it is listed or not."""
    repo = make_repo(FILES)
    config = make_config(protected_paths=PROTECTED)
    config = msgspec.structs.replace(config, sweep=SweepConfig(command="python -I measure.py"))
    shown = show_files(repo, "", 10_000, View.of(config))
    assert "OTHER = 1" in shown
    assert "CORRECT_CONFIG" not in shown
    assert "SECRET_CONSTANT" not in shown
    assert "4 files are not shown" in shown


def test_of_a_long_file_the_blocks_are_shown(make_repo):
    long = PROGRAM.replace("import os\n", "import os\n" + "x = 1\n" * 2000)
    repo = make_repo(FILES | {"task/initial_program.py": long})
    view = View(PROTECTED, (), ["task/initial_program.py"])
    shown = show_files(repo, "", 2000, view)
    assert "# EVOLVE-BLOCK-START\nRATE = 0.1\n# EVOLVE-BLOCK-END\n" in shown
    assert len(shown) < 2000
    with pytest.raises(PromptTooLong):
        show_files(repo, "", 20, view)


def test_a_file_that_does_not_fit_is_named(make_repo):
    repo = make_repo({"big.py": "x = 1\n" * 1000, "small.py": "y = 2\n"})
    shown = show_files(repo, "change big.py", 1000, View())
    assert "y = 2" in shown
    assert "Too long to be shown: big.py" in shown


def test_the_task_comes_first_and_the_budget_holds_for_every_prompt(
    worktree, make_config, tmp_path, run_git
):
    edit = "model.py\n<<<<<<< SEARCH\nRATE = 0.1\n=======\nRATE = 1\n>>>>>>> REPLACE"
    replies = ["A plan.", edit, "VERDICT: APPROVE"]
    (worktree / "notes.py").write_text("n = 1\n" * 2000)
    run_git(worktree, "add", "-A")
    run_git(worktree, "commit", "-q", "-m", "notes")
    with stand_in(*(Step(body=completion(text)) for text in replies)) as it:
        endpoint = EndpointConfig(base_url=it.url, model="m", max_tokens=16)
        backend = OpenaiBackend(endpoint=endpoint, prompt_tokens=1500)
        agents = AgentsConfig(planner=backend, coder=backend, reviewer=backend)
        config = make_config(agents, task="Fit the curve as well as you can.")
        implement(Assignment(config, "# Raise it\n", worktree, tmp_path / "logs", repo=tmp_path))
        for request in it.requests:
            prompt = request["messages"][0]["content"]
            assert prompt.index("Fit the curve") < 200
            assert len(prompt) <= 1500 * 4
        small = msgspec.structs.replace(backend, prompt_tokens=100)
        config = make_config(AgentsConfig(coder=small), task="Fit the curve.")
        with pytest.raises(AgentFailure, match="raise `prompt_tokens`") as caught:
            implement(
                Assignment(config, "# Raise it\n", worktree, tmp_path / "logs", repo=tmp_path)
            )
    assert caught.value.code == "prompt_too_long"
