"""The part of the repository that a model is shown, and the length of a prompt."""

from __future__ import annotations

import msgspec
import pytest

from tests.llm.endpoints import Step, completion, stand_in
from treewright.tree.agents.backend import AgentFailure
from treewright.tree.agents.implementation import Assignment, implement
from treewright.tree.agents.prompts import PromptTooLong, View, show_files
from treewright.tree.config import AgentsConfig, EndpointConfig, OpenaiBackend, SweepConfig

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
