"""Every finding code belongs to a check, is documented, and is used."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tree.steady.test_validation import FORGERIES
from tests.tree.validation.test_damage import DAMAGE
from treewright.tree import validation
from treewright.tree.validation.checks import CHECKS, GIT_FAILED, HISTORY_CODES, STRUCTURE_CODES
from treewright.tree.validation.findings import ADVICE, advice

ROOT = Path(__file__).parents[3]
CODES = {
    *HISTORY_CODES,
    *STRUCTURE_CODES,
    GIT_FAILED,
    *(c for check in CHECKS for c in check.codes),
}


def test_every_used_code_is_listed() -> None:
    package = Path(validation.__file__).parent
    source = "".join(path.read_text() for path in package.glob("*.py"))
    assert set(re.findall(r'Finding\(\s*"([a-z_0-9]+)"', source)) <= CODES


def test_every_code_is_documented_and_has_advice() -> None:
    text = (ROOT / "docs" / "validation.md").read_text()
    for code in CODES:
        assert f"`{code}`" in text
        assert advice(code)
    assert set(ADVICE) <= CODES


def test_damage_covers_all_codes() -> None:
    forged = {code for _, code in FORGERIES.values()}
    assert CODES - {code for code, _ in DAMAGE.values()} - forged == {GIT_FAILED}
