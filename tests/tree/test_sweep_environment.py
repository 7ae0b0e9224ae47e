"""The environment of generated code has no keys and no other repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.toy import CONFIG
from treewright.tree import config
from treewright.tree.agents.presets import PROVIDER_KEYS
from treewright.tree.evaluating import contexts
from treewright.tree.guard import commands

CODER = '\n[agents.coder]\nbackend = "command"\ncommand = ["my-agent"]\n'


def seen(tmp_path: Path, agents: str) -> set[str]:
    """Return the names of the variables that a test command sees."""
    path = tmp_path / "treewright.toml"
    path.write_text(CONFIG.partition("[agents")[0] + agents)
    loaded = config.load(path)
    context = commands.CommandContext(
        tmp_path, tmp_path, seed=0, hidden_variables=contexts.secret_variables(loaded)
    )
    done = commands.run_tests(config.TestsConfig(command="env | cut -d= -f1"), context)
    assert done.ok
    return set((tmp_path / "tests.log").read_text().split())


@pytest.fixture(autouse=True)
def variables(monkeypatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY"):
        monkeypatch.setenv(name, "a-secret-value")
    monkeypatch.delenv("CLAUDE_CODE_USE_BEDROCK", raising=False)


def test_keys_of_command_line_agents_are_hidden(tmp_path: Path) -> None:
    found = seen(tmp_path, CODER)
    assert not found & PROVIDER_KEYS
    assert {"PATH", "TREEWRIGHT_SEED", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY"} <= found


def test_aws_keys_are_hidden_if_the_agent_uses_them(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    assert "AWS_SECRET_ACCESS_KEY" not in seen(tmp_path, CODER)


def test_the_sweep_keeps_its_keys_if_no_agent_uses_them(tmp_path: Path) -> None:
    assert {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"} <= seen(tmp_path, "")


@pytest.mark.parametrize(
    ("address", "setting", "name"),
    [
        ("https://llm.example/v1", 'api_key_env = "WANDB_API_KEY"', "WANDB_API_KEY"),
        ("https://llm.example/v1", "", "ANTHROPIC_API_KEY"),
        ("https://api.openai.com/v1", "", "OPENAI_API_KEY"),
        ("https://me:$WANDB_API_KEY@llm.example/v1", "", "WANDB_API_KEY"),
    ],
)
def test_the_key_of_an_endpoint_is_hidden(
    tmp_path: Path, monkeypatch, address: str, setting: str, name: str
) -> None:
    monkeypatch.setenv("TREEWRIGHT_LLM_KEYS", "https://llm.example=ANTHROPIC_API_KEY")
    endpoint = f'[agents.coder.endpoint]\nbase_url = "{address}"\nmodel = "m"\n{setting}\n'
    found = seen(tmp_path, f'\n[agents.coder]\nbackend = "openai"\n{endpoint}')
    assert name not in found
    assert "ANTHROPIC_API_KEY" not in found, "nor one that the list names for somebody else"


def test_git_variables_of_the_caller_are_removed(tmp_path: Path, monkeypatch) -> None:
    location = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"}
    for name in location:
        monkeypatch.setenv(name, os.devnull)
    found = seen(tmp_path, "")
    assert not found & location
    assert "GIT_CONFIG_GLOBAL" in found
