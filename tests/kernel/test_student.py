"""Student's t: as printed."""

from __future__ import annotations

import pytest

from treewright.kernel.stats import student_quantile


@pytest.mark.parametrize(
    ("df", "table"),
    [
        (1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (7, 2.365), (10, 2.228),
        (11, 2.201), (24, 2.064), (29, 2.045), (60, 2.000), (120, 1.980), (1000, 1.962),
    ],
)  # fmt: skip
def test_student_quantiles_are_those_of_the_printed_tables(df: int, table: float) -> None:
    assert round(student_quantile(0.975, df), 3) == table


@pytest.mark.parametrize(
    ("p", "df", "table"), [(0.9, 3, 1.638), (0.95, 8, 1.860), (0.99, 2, 6.965)]
)
def test_other_student_quantiles(p: float, df: int, table: float) -> None:
    assert round(student_quantile(p, df), 3) == table
