"""Numbers on the command line: `nan` and `inf` are none, whatever they would be compared with."""

from __future__ import annotations

import math
from typing import Any

import click


class Number(click.FloatRange):
    """A finite number in a range. Of `nan` no bound holds and none is broken: a time limit of it
    would be no limit, and in a record it would be lost."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a number that can be used here.", param, ctx)
        return found


SECONDS = Number(min=0.0, min_open=True)
