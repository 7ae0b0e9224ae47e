"""Real repositories for the agents' tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from treewright.tree.config import (
    AgentsConfig,
    Config,
    DirectoryIdeas,
    MetricConfig,
    SweepConfig,
)

MODEL = "RATE = 0.1\nDEPTH = 3\n\n\ndef fit(x):\n    return x * RATE\n"


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=directory, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def run_git() -> Callable[..., str]:
    return git


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[..., Path]:
    def make(files: dict[str, str | bytes] | None = None, name: str = "the repo") -> Path:
        root = tmp_path / name
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        git(root, "config", "user.name", "Test")
        git(root, "config", "user.email", "test@example.invalid")
        for path, content in (files or {"model.py": MODEL, "README.md": "# Model\n"}).items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "start")
        return root

    return make


@pytest.fixture
def worktree(make_repo: Callable[..., Path], tmp_path: Path) -> Path:
    """A linked worktree on its own branch, as the coordinator makes them."""
    repo = make_repo()
    path = tmp_path / "cand" / "e 1"
    git(repo, "worktree", "add", "-q", "-b", "cand/e1", str(path))
    return path


@pytest.fixture
def make_config() -> Callable[..., Config]:
    def make(agents: AgentsConfig | None = None, **fields: object) -> Config:
        return Config(
            baseline_csv="baseline.csv",
            sweep=SweepConfig(command="true"),
            metrics=[MetricConfig(name="loss", direction="minimize", primary=True)],
            ideas=[DirectoryIdeas(path="ideas")],
            agents=agents or AgentsConfig(),
            **fields,  # pyright: ignore[reportArgumentType]
        )

    return make
