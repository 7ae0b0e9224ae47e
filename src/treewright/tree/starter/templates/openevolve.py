"""The part of the sweep that is different for an OpenEvolve task: a config is a seed of the
evaluator. Its text takes the place of what `sweep.py` leaves to be filled in."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import sys
from pathlib import Path

HERE = CODE = Path()
SEEDED = True
PROGRAM = ""
EVALUATOR = ""
STAGES: list[tuple[str, float | None]] = []
ARTIFACT_CHARS = 1000
SCORE_OF = ""
FEATURES: list[str] = []
EVERY_CONFIG_IS_A_SEED = False

# -- the task -----------------------------------------------------------------------------

SIGNS_OF_AN_ERROR = ("error", "failure", "traceback", "full_traceback")
"""Artifacts with these names, and a score of 0, say that the evaluation failed."""
MEAN_OF = "the score is the mean of "
"""The log says after this which numbers are counted. `treewright init` reads it."""
GOOD_STATES = ("ok", "success", "succeeded", "complete", "completed", "done", "passed", "valid")


def question(config_id: int, seed: int) -> object:
    """Return the seed of a config; the evaluator chooses its own inputs."""
    return {"seed": (seed * 1_000_003 + config_id) % 2**32 if SEEDED else None}


def answer(asked: object) -> object:
    """Return the result of `evaluate(program_path)`, from a separate process."""
    import asyncio
    import importlib.util
    import inspect

    start_random_numbers(asked["seed"])  # type: ignore[index]
    paths = [HERE / EVALUATOR, CODE / PROGRAM]
    spec = importlib.util.spec_from_file_location("evaluator", paths[0])
    evaluator = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules["evaluator"] = evaluator
    spec.loader.exec_module(evaluator)  # type: ignore[union-attr]

    def call(function: str, program: Path) -> object:
        """The metrics of one function of the evaluator."""
        heard = Listener(sys.stderr)
        with contextlib.redirect_stderr(heard), contextlib.redirect_stdout(heard):  # type: ignore[type-var]
            result = getattr(evaluator, function)(str(program))
            if inspect.isawaitable(result):
                result = asyncio.run(result)  # type: ignore[arg-type]
        returned = getattr(result, "metrics", result)
        # Models read this: the end of the sweep's log is part of their prompts.
        print(f"{function} returned {returned}"[:1000])
        artifacts = getattr(result, "artifacts", None) or {}
        for name, text in artifacts.items() if ARTIFACT_CHARS else ():
            print(f"artifact {name}: {text}"[:ARTIFACT_CHARS])
        signs = [name for name in artifacts if str(name).startswith(SIGNS_OF_AN_ERROR)]
        if isinstance(returned, dict) and signs and not mean_score(returned):
            returned.setdefault("error", f"{signs[0]}: {artifacts[signs[0]]}"[:1000])
        if isinstance(returned, dict) and heard.error and not mean_score(returned):
            # Many evaluators catch every exception, print it and return zeros.
            returned.setdefault("error", f"a score of 0, after {heard.error}"[:1000])
        return returned

    metrics = call("evaluate", paths[1]) if not STAGES else {}
    for function, threshold in STAGES:
        found = call(function, paths[1])
        if not isinstance(found, dict):
            raise TypeError(f"{function} did not return a dictionary of metrics")
        metrics = {**metrics, **found}  # type: ignore[dict-item]
        score = mean_score(found)
        # With a seed for every config, a stage falls short now and then by chance alone.
        if threshold is None or EVERY_CONFIG_IS_A_SEED or score >= threshold:
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


class Listener:
    """A stream that passes on what is printed, and keeps the error of the last traceback."""

    def __init__(self, stream):  # type: ignore[no-untyped-def]
        self.stream = stream
        self.error = self.line = ""
        self.is_in_traceback = False

    def write(self, text: str) -> int:
        *lines, self.line = (self.line + text).split("\n")
        for line in lines:
            if line.startswith("Traceback (most recent call last)"):
                self.is_in_traceback = True
            elif self.is_in_traceback and line.strip() and not line.startswith(" "):
                self.is_in_traceback, self.error = False, line
        return self.stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


def start_random_numbers(seed: int | None) -> None:
    """Seed Python's, numpy's and torch's generators; None leaves them to the system."""
    import random

    own = Path(__file__).name
    sources = [path for place in (HERE, CODE) for path in place.glob("*.py") if path.name != own]
    text = b"".join(path.read_bytes() for path in sources)
    uses_numpy = any(name in text for name in (b"numpy", b"scipy", b"sklearn", b"pandas"))
    numpy = imported("numpy") if uses_numpy else None
    torch = imported("torch") if b"import torch" in text or b"from torch" in text else None
    if seed is not None:
        random.seed(seed)
        if numpy is not None:
            numpy.random.seed(seed)
        if torch is not None:
            torch.manual_seed(seed)
    if EVERY_CONFIG_IS_A_SEED:
        mix_fixed_seeds(int.from_bytes(os.urandom(4), "big") if seed is None else seed)


def imported(name: str):  # type: ignore[no-untyped-def]
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def mix_fixed_seeds(seed: int) -> None:
    """Let `seed(42)` in the program or in the evaluator mean something else in every config.

    Otherwise all configs would share the same random numbers, and a change that only moves them
    would look like a gain in every config.
    """
    import random

    def mixed(given: object) -> object:
        plain = isinstance(given, (bool, int, float, str, bytes, list, tuple))
        if not plain and type(given).__module__ != "numpy":
            return given
        return int.from_bytes(hashlib.sha256(f"{seed}:{given!r}".encode()).digest()[:4], "big")

    def mixed_names(named: dict[str, object]) -> dict[str, object]:
        names = ("seed", "entropy", "key", "a")
        return {name: mixed(value) if name in names else value for name, value in named.items()}

    def wrapped(function):  # type: ignore[no-untyped-def]
        return lambda *given, **named: function(
            *map(mixed, given[:1]), *given[1:], **mixed_names(named)
        )

    def wrapped_method(method):  # type: ignore[no-untyped-def]
        return lambda self, *given, **named: method(
            self, *map(mixed, given[:1]), *given[1:], **mixed_names(named)
        )

    def wrapped_class(plain):  # type: ignore[no-untyped-def]
        class Mixing(type):
            def __instancecheck__(cls, each: object) -> bool:
                return isinstance(each, plain)

            def __call__(cls, *given, **named):  # type: ignore[no-untyped-def]
                return plain(*map(mixed, given[:1]), *given[1:], **mixed_names(named))

        return Mixing(plain.__name__, (plain,), {"__module__": plain.__module__})

    random.Random.seed = wrapped_method(random.Random.seed)  # type: ignore[method-assign]
    random.seed = random._inst.seed  # type: ignore[attr-defined]
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed = wrapped(numpy.random.seed)
        numpy.random.default_rng = wrapped(numpy.random.default_rng)
        for name in ("RandomState", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "SFC64"):
            setattr(numpy.random, name, wrapped_class(getattr(numpy.random, name)))
    if torch is not None:
        torch.manual_seed = wrapped(torch.manual_seed)  # type: ignore[attr-defined]


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
    """Return a number as JSON has it: also numpy's; None for one that is not finite."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(value)
    return number if math.isfinite(number) else None


def judge(asked: object, answered: object) -> dict[str, float]:
    """The score is `combined_score`; without one, as in OpenEvolve, the mean of all numbers that
    are no FEATURES."""
    if not isinstance(answered, dict):
        raise TypeError("evaluate did not return a dictionary of metrics")
    if answered.get("error"):
        raise RuntimeError(f"the evaluator says: {answered['error']}")
    status = answered.get("status")
    if isinstance(status, str) and status.lower() not in GOOD_STATES:
        raise RuntimeError(f"the evaluator says: status {status}")
    if SCORE_OF and SCORE_OF not in answered:
        raise ValueError(
            f"evaluate returned no {SCORE_OF}, only {', '.join(answered) or 'nothing'}"
        )
    if "combined_score" in answered:
        return {"combined_score": answered["combined_score"]}
    numbers = {
        name: value
        for name, value in answered.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    if not numbers or None in answered.values():
        raise ValueError("evaluate returned a metric that is not a finite number, or none at all")
    counted = {name: value for name, value in numbers.items() if name not in FEATURES} or numbers
    if len(counted) > 1:
        print(f"{MEAN_OF}{', '.join(counted)}", file=sys.stderr)
    return {"combined_score": sum(counted.values()) / len(counted)}
