"""Measures the model: backtests on a grid of shops, horizons and half-years, one CSV row each.

The model runs in a process of its own (forecaster.py) that is given the days before each
cut and the calendar after it: it never holds the answers, nor the path of the results.

    python -I sweep.py    # -I: no file of this repository can pass for the standard library

    TREEWRIGHT_SWEEP_CONFIG_START  first config_id to run (default 0)
    TREEWRIGHT_SWEEP_CONFIG_LIMIT  run only config_id < this (default 12; there are 24)
    TREEWRIGHT_RESULTS_CSV         where the results go (default results.csv)
    TREEWRIGHT_SEED                seed of `random` in the model's process (default 0)

A model that declines a history (CannotForecast) gets a row whose status is `declined`;
any other error of the model ends the sweep with exit code 1 and no results.
"""

from __future__ import annotations

import csv
import datetime
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SHOPS = ("bakery", "cafe", "florist", "grocer", "kiosk", "stationer")
HORIZONS = (7, 28)
HALF_YEARS = (546, 728)  # the first cut of each, as a day of the data
CUTS = 10
DAYS_BETWEEN_CUTS = 15  # not a multiple of 7: the cuts fall on all weekdays
DEFAULT_LIMIT = 12
COLUMNS = ("config_id", "status", "mase", "abs_bias", "p90_error", "shop", "horizon")


class Config(NamedTuple):
    config_id: int
    shop: str
    horizon: int
    first_cut: int

    @property
    def cuts(self) -> range:
        return range(self.first_cut, self.first_cut + CUTS * DAYS_BETWEEN_CUTS, DAYS_BETWEEN_CUTS)


class Series(NamedTuple):
    weekdays: list[int]
    promo: list[bool]
    units: list[float]


def grid() -> list[Config]:
    """Rows 0..11 are one half-year, 12..23 the next. Six in a row are six shops, both horizons."""
    rows = []
    for first_cut in HALF_YEARS:
        for turn in range(len(HORIZONS)):
            for place, shop in enumerate(SHOPS):
                horizon = HORIZONS[(place + turn) % len(HORIZONS)]
                rows.append(Config(len(rows), shop, horizon, first_cut))
    return rows


def read_data(path: Path) -> dict[str, Series]:
    with path.open(newline="", encoding="utf-8") as lines:
        days = list(csv.DictReader(lines))
    weekdays = [datetime.date.fromisoformat(day["date"]).weekday() for day in days]
    return {
        shop: Series(
            weekdays,
            [day[f"{shop}_promo"] == "1" for day in days],
            [float(day[shop]) for day in days],
        )
        for shop in SHOPS
    }


def ask_model(
    configs: list[Config], data: dict[str, Series], seed: str
) -> dict[int, list[list[float]] | str]:
    """Per config_id the forecasts, one list a cut, or why the model declines.

    Questions are asked one by one and in the order of time: whatever the model remembers
    of earlier ones, it has not seen the days that it is asked for.
    """
    answers: dict[int, list[list[float]] | str] = {config.config_id: [] for config in configs}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TREEWRIGHT_")}
    command = [sys.executable, "-I", str(HERE / "forecaster.py"), seed]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as model:
        for cut, config in sorted((cut, asked) for asked in configs for cut in asked.cuts):
            forecasts = answers[config.config_id]
            if isinstance(forecasts, str):
                continue
            answer = _ask(model, _question(data[config.shop], cut, config.horizon))
            if "declined" in answer:
                answers[config.config_id] = answer["declined"]
            else:
                forecasts.append(answer["forecast"])
    return answers


def _question(series: Series, cut: int, horizon: int) -> str:
    days = list(zip(series.weekdays, series.promo, series.units, strict=True))
    ahead = [(weekday, promo) for weekday, promo, _ in days[cut : cut + horizon]]
    return json.dumps({"history": days[:cut], "ahead": ahead})


def _ask(model: subprocess.Popen[str], question: str) -> dict:
    assert model.stdin is not None
    assert model.stdout is not None
    try:
        model.stdin.write(question + "\n")
        model.stdin.flush()
        answer = json.loads(model.stdout.readline() or "null")
    except BrokenPipeError:
        answer = None
    except json.JSONDecodeError as error:
        raise SystemExit(f"sweep: the model's answer is not JSON: {error}") from error
    if not isinstance(answer, dict):
        raise SystemExit("sweep: the model failed, see above")
    return answer


def measure(config: Config, series: Series, forecasts: list[list[float]]) -> dict[str, float]:
    """Errors in units of the naive one: the same shop's mean change from week to week."""
    errors = []
    for cut, expected in zip(config.cuts, forecasts, strict=True):
        if len(expected) != config.horizon:
            found = f"{len(expected)} values for {config.horizon} days"
            raise SystemExit(f"sweep: config {config.config_id}: the model gave {found}")
        past = series.units[:cut]
        naive = [abs(new - old) for new, old in zip(past[7:], past, strict=False)]
        scale = math.fsum(naive) / len(naive)
        actual = series.units[cut : cut + config.horizon]
        errors += [(guess - sold) / scale for guess, sold in zip(expected, actual, strict=True)]
    sizes = sorted(abs(error) for error in errors)
    if not all(map(math.isfinite, errors)):
        return dict.fromkeys(("mase", "abs_bias", "p90_error"), math.nan)
    return {
        "mase": math.fsum(sizes) / len(sizes),
        "abs_bias": abs(math.fsum(errors)) / len(errors),
        "p90_error": sizes[math.ceil(0.9 * len(sizes)) - 1],
    }


def main() -> None:
    start = int(os.environ.get("TREEWRIGHT_SWEEP_CONFIG_START") or 0)
    limit = int(os.environ.get("TREEWRIGHT_SWEEP_CONFIG_LIMIT") or DEFAULT_LIMIT)
    results = Path(os.environ.get("TREEWRIGHT_RESULTS_CSV") or "results.csv")
    configs = [config for config in grid() if start <= config.config_id < limit]
    data = read_data(HERE / "data" / "demand.csv")

    rows = []
    answers = ask_model(configs, data, os.environ.get("TREEWRIGHT_SEED") or "0")
    for config in configs:
        answer = answers[config.config_id]
        row: dict[str, object] = {
            "config_id": config.config_id,
            "status": "ok",
            "shop": config.shop,
            "horizon": config.horizon,
        }
        if isinstance(answer, str):
            row["status"] = "declined"
            print(f"sweep: config {config.config_id}: {answer}", file=sys.stderr)
        else:
            metrics = measure(config, data[config.shop], answer)
            row |= {name: f"{value:.6f}" for name, value in metrics.items()}
        rows.append(row)

    results.parent.mkdir(parents=True, exist_ok=True)
    partial = results.with_name(results.name + ".partial")
    with partial.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(results)


if __name__ == "__main__":
    main()
