"""Every code that the program can give has words, and every one of them is documented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import treewright.tree
from treewright.tree.deciding.results import ProblemCode
from treewright.tree.records.model import Fate, StopReason
from treewright.tree.report import reasons

ROOT = Path(__file__).parents[3]


def test_stable_codes_of_the_program_are_known() -> None:
    """Codes in the source are literals behind AgentFailure, EvalError and Rejected."""
    source = "".join(
        path.read_text() for path in Path(treewright.tree.__file__).parent.rglob("*.py")
    )
    made = set(re.findall(r'(?:AgentFailure|EvalError|Rejected)\(\s*"([a-z_]+)"', source))
    assert made
    assert {*made, *get_args(ProblemCode)} <= set(reasons._REASONS)


def test_fates_and_stop_reasons_are_known() -> None:
    assert set(get_args(Fate)) == set(reasons._FATES)
    assert set(get_args(StopReason)) == set(reasons._STOP_REASONS)


def test_codes_are_documented() -> None:
    text = (ROOT / "docs" / "report.md").read_text()
    for code in (*reasons._REASONS, *reasons._FATES):
        family = code.split("_")[0]
        assert f"`{code}`" in text or f"`{family}_*`" in text, code
