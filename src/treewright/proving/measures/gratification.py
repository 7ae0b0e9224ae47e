"""Delayed gratification: whether a search accepts a decline of its estimate, and gains by it.

The measure follows the root's provability over the iterations of one goal. Each unbroken decline
(the dip) is compared with the unbroken rise after it (the gain), as gain over dip.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from treewright.proving.measures.intervals import upper_p
from treewright.proving.records import Iteration

_FEWEST_EXCURSIONS = 5
"""With fewer excursions there are too few permutations for a small p-value."""


class Excursion(msgspec.Struct, frozen=True):
    """A decline from `start` to `bottom` and the rise after it to `end`, as positions."""

    start: int
    bottom: int
    end: int
    dip: float
    gain: float

    @property
    def ratio(self) -> float:
        """The gain over the dip."""
        return self.gain / self.dip


class Gratification(msgspec.Struct, frozen=True):
    """`ratio` is the sum of gains over the sum of dips; `mean_ratio` weighs all excursions alike.

    `p` is small if deeper dips are followed by larger gains; it needs some excursions. If no dip is
    followed by a rise, the ratios are None and `undefined` gives the reason. `open_dip` is a final
    decline without a rise; no ratio contains it.
    """

    excursions: tuple[Excursion, ...]
    ratio: float | None
    mean_ratio: float | None
    open_dip: float
    p: float | None
    undefined: str | None = None


def root_series(iterations: Sequence[Iteration], *, settled: bool = False) -> list[float]:
    """Return the root's provability after each iteration of one goal.

    A settled root is 1 or 0 by proof, not by estimate: unless `settled`, the series ends before it.
    """
    values: list[float] = []
    for iteration in iterations:
        known = 0 in iteration.solved or 0 in iteration.dead
        if known and not settled:
            break
        values.append(iteration.root_value)
    return values


def gratification(
    series: Sequence[float], *, seed: int = 0, permutations: int = 999
) -> Gratification:
    """Return the measure for one series of estimates."""
    excursions, open_dip = excursions_of(series)
    if not excursions:
        return Gratification((), None, None, open_dip, None, _why(series, open_dip))
    return Gratification(
        tuple(excursions),
        sum(e.gain for e in excursions) / sum(e.dip for e in excursions),
        sum(e.ratio for e in excursions) / len(excursions),
        open_dip,
        _depth_pays(excursions, seed, permutations),
    )


def excursions_of(series: Sequence[float]) -> tuple[list[Excursion], float]:
    """Return every dip with the gain after it, and the size of a final dip without a gain.

    Equal neighbours end neither a decline nor a rise.
    """
    runs: list[tuple[bool, int, int]] = []
    for place, (before, after) in enumerate(pairwise(series), 1):
        if after == before:
            continue
        if runs and runs[-1][0] == (after > before):
            runs[-1] = (*runs[-1][:2], place)
        else:
            runs.append((after > before, place - 1, place))
    found = [
        Excursion(start, bottom, end, series[start] - series[bottom], series[end] - series[bottom])
        for (rises, start, bottom), (_, _, end) in pairwise(runs)
        if not rises
    ]
    open_dip = runs[-1] if runs and not runs[-1][0] else None
    return found, series[open_dip[1]] - series[open_dip[2]] if open_dip else 0.0


def _depth_pays(excursions: Sequence[Excursion], seed: int, permutations: int) -> float | None:
    """Return the p-value for deeper dips having larger gains, by permutation of the gains."""
    if len(excursions) < _FEWEST_EXCURSIONS:
        return None
    import numpy as np  # importing numpy takes a tenth of a second, so a short run does without

    dips = np.array([e.dip for e in excursions])
    gains = np.array([e.gain for e in excursions])
    dealt = np.random.default_rng(seed).permuted(np.tile(gains, (permutations, 1)), axis=1)
    return upper_p(float(dips @ gains), dealt @ dips)


def _why(series: Sequence[float], open_dip: float) -> str:
    if len(series) < 3:
        return "fewer than three values"
    return "no rise after the only dip" if open_dip else "no dip"
