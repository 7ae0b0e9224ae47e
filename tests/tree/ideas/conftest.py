from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treewright.tree.ideas.idea_source import NodeContext


@pytest.fixture
def make_context(tmp_path: Path) -> Callable[..., NodeContext]:
    def make(**fields: Any) -> NodeContext:
        checkout, scratch = tmp_path / "node files", tmp_path / "scratch"
        checkout.mkdir(exist_ok=True)
        scratch.mkdir(exist_ok=True)
        values: dict[str, Any] = {
            "node_id": "n0",
            "depth": 0,
            "wanted": 5,
            "seed": 0,
            "checkout": checkout,
            "repo": checkout,
            "context_ideas_dirs": [],
            "diff_stat": "",
            "last_summary": None,
            "scratch": scratch,
        }
        return NodeContext(**(values | fields))

    return make
