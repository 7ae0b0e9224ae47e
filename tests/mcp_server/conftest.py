"""One server per test worker, for a Lean project and a repository with a finished search."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp_server.agent import Agent, agent
from tests.toy import ToyRepository
from tests.tree.runs import make_target, search

LAWS = """theorem double_zero : 0 + 0 = 0 := by
  sorry

theorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := by
  constructor
  · sorry
  · exact h.1
"""
WRONG = 'def wrong : Nat := "seven"\n'


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a file with two open goals, one that does not elaborate, and a small Lake project."""
    root = tmp_path_factory.mktemp("agent") / "shelf"
    (root / "lake" / "Shelf").mkdir(parents=True)
    (root / "Laws.lean").write_text(LAWS)
    (root / "Wrong.lean").write_text(WRONG)
    (root / "lake" / "lakefile.toml").write_text('name = "shelf"\n\n[[lean_lib]]\nname = "Shelf"\n')
    return root


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> ToyRepository:
    toy = make_target(tmp_path_factory.mktemp("searched") / "a target")
    search(toy.path, ideas_per_node=6, beam_width=1, max_depth=1, sweep_config_limit=4)
    return toy


@pytest.fixture(scope="session")
def served(shelf: Path, target: ToyRepository, home: object) -> Iterator[Agent]:
    """Start the server after `home`: the bundled Lean is installed before a time limit starts."""
    roots = [f"--root={path}" for path in (shelf, target.path)]
    with agent(*roots, "--lean=wasm", "--allow-steering", cwd=Path(os.sep)) as running:
        yield running
