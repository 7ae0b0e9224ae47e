"""The examples in the docstrings of public classes and functions run as they are written."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

MODULES = [
    "treewright.kernel.exports",
    "treewright.kernel.executors.threads",
    "treewright.runs.compared_runs",
    "treewright.runs.run_loader",
    "treewright.search.policies.policy",
    "treewright.search.durable_search",
    "treewright.search.study",
    "treewright.search.recorded_search",
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
