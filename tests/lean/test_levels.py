"""Every level of bench/levels has a proof, which is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from treewright.lean.session.answers import CheckResult
from treewright.lean.session.host_session import HostSession

LEVELS = Path(__file__).parents[2] / "bench" / "levels"


@pytest.mark.parametrize(
    ("name", "count"), [("natural_numbers", 74), ("structures", 74), ("predicates", 60)]
)
def test_every_level_can_be_proved(lean: HostSession, name: str, count: int) -> None:
    text = (LEVELS / f"{name}.lean").read_text("utf-8")
    result = lean.check_file(text, timeout=200)
    assert isinstance(result, CheckResult)
    assert not result.errors
    assert "sorry" not in text
    assert text.count("\ntheorem ") >= count
