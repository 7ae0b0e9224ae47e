"""Writes demand.csv: three years of daily unit sales in six shops, made up but not made easy.

Each shop has its own size, week, year, growth, promotion effect and noise, and a level
that drifts. Two kinds of day do not say what demand was: stock-outs (nothing on the
shelf, so zero sold) and bulk orders (one customer buys for a wedding).

    python data/make_data.py            # rewrites data/demand.csv, always the same bytes
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import random
import sys
from dataclasses import dataclass
from pathlib import Path

FIRST_DAY = datetime.date(2021, 1, 4)  # a Monday
DAYS = 3 * 364


@dataclass(frozen=True)
class Shop:
    name: str
    size: float
    week: tuple[float, ...]
    year: float
    growth: float
    uplift: float
    noise: float
    drift: float


SHOPS = (
    Shop("bakery", 210, (0.8, 0.8, 0.9, 1.0, 1.2, 1.5, 0.8), 0.05, 0.04, 1.30, 0.08, 0.006),
    Shop("cafe", 140, (0.9, 1.0, 1.0, 1.0, 1.2, 1.3, 0.6), 0.12, 0.10, 1.55, 0.10, 0.007),
    Shop("florist", 60, (0.7, 0.7, 0.8, 1.0, 1.4, 1.6, 0.8), 0.20, 0.00, 1.90, 0.13, 0.008),
    Shop("grocer", 420, (0.9, 0.9, 0.9, 1.0, 1.2, 1.3, 0.8), 0.06, 0.02, 1.40, 0.06, 0.005),
    Shop("kiosk", 95, (1.1, 1.1, 1.1, 1.1, 1.2, 0.8, 0.6), 0.15, -0.05, 1.15, 0.12, 0.007),
    Shop("stationer", 75, (1.2, 1.1, 1.1, 1.0, 1.1, 1.0, 0.5), 0.18, 0.06, 1.70, 0.11, 0.008),
)


def sales(shop: Shop) -> tuple[list[int], list[int]]:
    """Units sold and promotion flags, day by day."""
    draw = random.Random(f"demand/{shop.name}")
    promo = _promotions(draw)
    level, units = 0.0, []
    for day in range(DAYS):
        level = 0.995 * level + draw.gauss(0.0, shop.drift)
        year = shop.year * math.sin(2 * math.pi * (day / 364 + shop.size / 100))
        mean = shop.size * math.exp(level + year + shop.growth * day / 364)
        mean *= shop.week[day % 7] * (shop.uplift if promo[day] else 1.0)
        sold = mean * math.exp(draw.gauss(0.0, shop.noise))
        mishap = draw.random()
        if mishap < 0.015:
            sold = 0.0
        elif mishap < 0.027:
            sold += shop.size * draw.uniform(1.5, 4.0)
        units.append(round(sold))
    return units, promo


def _promotions(draw: random.Random) -> list[int]:
    """Runs of three to seven days, two to six weeks apart."""
    flags = [0] * DAYS
    day = draw.randint(7, 28)
    while day < DAYS:
        length = draw.randint(3, 7)
        for promoted in range(day, min(day + length, DAYS)):
            flags[promoted] = 1
        day += length + draw.randint(14, 42)
    return flags


def render() -> str:
    columns: list[list[int]] = []
    header = ["date"]
    for shop in SHOPS:
        header += [shop.name, f"{shop.name}_promo"]
        columns += sales(shop)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for day in range(DAYS):
        date = FIRST_DAY + datetime.timedelta(days=day)
        writer.writerow([date.isoformat(), *(column[day] for column in columns)])
    return out.getvalue()


if __name__ == "__main__":
    target = Path(__file__).with_name("demand.csv")
    target.write_text(render(), encoding="utf-8")
    print(f"wrote {target.name}", file=sys.stderr)
