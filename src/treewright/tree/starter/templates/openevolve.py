"""The part of the sweep that is different for an OpenEvolve task: one config, which is the
evaluator's. Its text takes the place of what `sweep.py` leaves to be filled in."""

from __future__ import annotations

import math
import sys
from pathlib import Path

HERE = CODE = Path()
PROGRAM = ""
EVALUATOR = ""
STAGES: list[tuple[str, float | None]] = []
ARTIFACT_CHARS = 1000

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

    def call(function: str, program: Path) -> object:
        """The metrics of one function of the evaluator."""
        result = getattr(evaluator, function)(str(program))
        if inspect.isawaitable(result):
            result = asyncio.run(result)  # type: ignore[arg-type]
        returned = getattr(result, "metrics", result)
        # What is printed is shown to models: the end of the sweep's log is part of their prompts.
        print(f"{function} returned {returned}"[:1000])
        artifacts = getattr(result, "artifacts", None) if ARTIFACT_CHARS else None
        for name, text in (artifacts or {}).items():
            print(f"artifact {name}: {text}"[:ARTIFACT_CHARS])
        return returned

    metrics = call("evaluate", paths[1]) if not STAGES else {}
    for function, threshold in STAGES:
        found = call(function, paths[1])
        if not isinstance(found, dict):
            raise TypeError(f"{function} did not return a dictionary of metrics")
        metrics = {**metrics, **found}  # type: ignore[dict-item]
        score = mean_score(found)
        if threshold is None or score >= threshold:
            continue
        if (HERE / PROGRAM).read_bytes() != paths[1].read_bytes():
            # The program that the search started from may fall short, and others of its kind.
            root = mean_score(call(function, HERE / PROGRAM))
            if score < root:
                raise SystemExit(
                    f"{function} gave {score:g}: below its threshold {threshold:g}, and below the "
                    f"{root:g} of the program that the search started from"
                )
    if not isinstance(metrics, dict):
        return metrics
    return {
        name: value if isinstance(value, (bool, int, str)) else _number(value)
        for name, value in metrics.items()
    }


def mean_score(metrics: object) -> float:
    """The score of a stage: `combined_score`, or else the mean of all numbers."""
    if not isinstance(metrics, dict):
        return 0.0
    if "combined_score" in metrics:
        return float(metrics["combined_score"])
    numbers = [
        float(value)
        for name, value in metrics.items()
        if name != "error" and hasattr(value, "__float__") and not isinstance(value, str)
    ]
    return sum(numbers) / len(numbers) if numbers else 0.0


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
