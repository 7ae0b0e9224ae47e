"""The part of the sweep that is different for an OpenEvolve task: one config, which is the
evaluator's. Its text takes the place of what `sweep.py` leaves to be filled in."""

from __future__ import annotations

import math
import sys
from pathlib import Path

HERE = CODE = Path()
PROGRAM = ""
EVALUATOR = ""

# -- the task -----------------------------------------------------------------------------


def question(config_id: int, seed: int) -> object:
    """One config: the evaluator decides what it tries the program on."""
    return {"seed": seed}


def answer(asked: object) -> object:
    """What `evaluate(program_path)` returns, in a process of its own."""
    import asyncio
    import importlib.util
    import inspect
    import random

    seed = asked["seed"]  # type: ignore[index]
    random.seed(seed)
    paths = [HERE / EVALUATOR, CODE / PROGRAM]
    if any(b"numpy" in path.read_bytes() for path in paths):
        import numpy

        numpy.random.seed(seed % 2**32)
    spec = importlib.util.spec_from_file_location("evaluator", paths[0])
    evaluator = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules["evaluator"] = evaluator
    spec.loader.exec_module(evaluator)  # type: ignore[union-attr]
    result = evaluator.evaluate(str(paths[1]))
    if inspect.isawaitable(result):
        result = asyncio.run(result)  # type: ignore[arg-type]
    metrics = getattr(result, "metrics", result)
    # What is printed is shown to models: the end of the sweep's log is part of their prompts.
    print(f"evaluate returned {metrics}"[:1000])
    for name, text in (getattr(result, "artifacts", None) or {}).items():
        print(f"artifact {name}: {text}"[:1000])
    return {
        name: value if isinstance(value, (bool, int, str)) else _number(value)
        for name, value in metrics.items()
    }


def _number(value: object) -> object:
    """As JSON has it: numpy's numbers are numbers, and what is not finite is none."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(value)
    return number if math.isfinite(number) else None


def judge(asked: object, answered: object) -> dict[str, float]:
    """The score is `combined_score`; without one, the mean of all numbers, as in OpenEvolve."""
    if not isinstance(answered, dict):
        raise TypeError("evaluate did not return a dictionary of metrics")
    if answered.get("error"):
        print(f"the evaluator says: {answered['error']}", file=sys.stderr)
    if "combined_score" in answered:
        return {"combined_score": answered["combined_score"]}
    numbers = [
        value
        for value in answered.values()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    if not numbers or None in answered.values():
        raise ValueError("evaluate returned a metric that is not a finite number, or none at all")
    return {"combined_score": sum(numbers) / len(numbers)}
