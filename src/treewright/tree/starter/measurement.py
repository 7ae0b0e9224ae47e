"""Measuring an OpenEvolve task once for `init`: does its score depend on random numbers?

The task is measured in a copy of the repository, by the sweep that is written for it: with several
seeds, without a seed, and with a program that draws random numbers and has no other change.
"""

from __future__ import annotations

import csv
import dataclasses
import math
import os
import shutil
import statistics
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.procs import process
from treewright.kernel.stats import same_measurement
from treewright.tree.evaluating.contexts import end_of
from treewright.tree.evaluating.perturbation import CONTROL, perturb, write
from treewright.tree.starter.survey import list_files, run_script
from treewright.tree.starter.task import Task

_DRAWS = (7, 11, 13)
_MOST_SEEDS = 12
_SECONDS_OF_SEEDS = 20.0
"""More than two seeds are tried only while they take no longer than this together."""
_LARGEST_COPY = 1 << 30
_GRACE = 60.0
_LONGEST_LIST = 1000


@dataclass(frozen=True, slots=True)
class Measurement:
    """The dependence of a task's score on random numbers and on the machine.

    `is_exact` holds if it was the same every time; `why` gives the observation in one sentence.
    `problem` is why the task could not be measured. `spread` is the standard deviation of the score
    under one seed, if it is not the same: then it depends on the machine, and not only on a seed.
    """

    is_exact: bool
    why: str
    problem: str = ""
    spread: float | None = None
    mean_of: str = ""
    """The names of the numbers whose mean the score is; "" if the evaluator returns one score."""


_MEAN_OF = "the score is the mean of "
REPEATS = 8
"""Repeats in turns with the parent, where the score differs under one seed."""
_SAMPLES = 6
_STANDARD_ERRORS = 3.0
SEEDS = 16
"""Seeds on which a candidate is compared with its parent, where the score depends on chance."""
HELDOUT_SEEDS = 32
"""Other seeds, on which a gain has to show again."""
_ALL_SEEDS = 1000


def measure(repo: Path, task: Task) -> Measurement:
    """Measure a task in a copy of the repository."""
    with tempfile.TemporaryDirectory(prefix="treewright-init-") as name:
        copy = Path(name).resolve() / "repository"
        problem = _copy(repo, copy)
        if problem:
            return Measurement(False, "", problem=problem)
        (copy / task.sweep_path).write_text(task.sweep, encoding="utf-8")
        command = run_script(task.sweep_path, "")
        trial = _Trial(copy, command, task.program, task.seconds + _GRACE)
        found = trial.run()
        return dataclasses.replace(found, mean_of=trial.read_mean_of())


def apply(task: Task, found: Measurement) -> Task:
    """Return the task with the comparison that its measurement asks for."""
    if found.mean_of:
        notes = textwrap.wrap(f"Warning: {warn(found)}", 98)
        task = dataclasses.replace(task, notes=[*task.notes, *notes])
    if found.is_exact:
        lines = [f"Measured by `treewright init`: {found.why}."]
        return dataclasses.replace(task, noise=lines)
    if found.spread is not None:
        return dataclasses.replace(
            task,
            repeats=REPEATS,
            tolerance=_STANDARD_ERRORS * found.spread * math.sqrt(2 / REPEATS),
            noise=textwrap.wrap(f"It is not the same twice ({found.why}).", 98),
        )
    why = f"could not be measured: {found.problem}"[:300] if found.problem else found.why
    sweep = task.sweep.replace("ALL_CONFIGS = 1\n", f"ALL_CONFIGS = {_ALL_SEEDS}\n", 1)
    sweep = sweep.replace("EVERY_CONFIG_IS_A_SEED = False", "EVERY_CONFIG_IS_A_SEED = True", 1)
    return dataclasses.replace(
        task,
        sweep=sweep,
        seconds=task.seconds * (SEEDS + HELDOUT_SEEDS),
        seeds=SEEDS,
        heldout_seeds=HELDOUT_SEEDS,
        noise=textwrap.wrap(f"It depends on random numbers ({' '.join(why.split())}).", 98),
    )


def warn(found: Measurement) -> str:
    """Return a warning about a score that is a mean of several numbers; "" for one number."""
    if not found.mean_of:
        return ""
    return (
        f"the evaluator returns no combined_score, so the score is the mean of {found.mean_of}, as "
        "in OpenEvolve. A gain in any of them counts, also where a smaller number would be better. "
        "If that is not what you want, let `evaluate` return a combined_score."
    )


def explain(found: Measurement) -> str:
    """Say which comparison was chosen, and why."""
    if found.is_exact:
        return (
            f"Measured combined_score: {found.why}. It is one number, compared exactly "
            "(deterministic = true)."
        )
    if found.spread is not None:
        return (
            f"Measured combined_score: {found.why}. What differs under one seed may depend on the "
            f"machine, so candidate and parent are measured {REPEATS} times in turns (repeats = "
            f"{REPEATS}), and a gain has to exceed the noise that was measured (tolerance)."
        )
    chosen = (
        f"every config is another seed: a candidate is compared with its parent on {SEEDS} seeds, "
        f"and its gain has to show on {HELDOUT_SEEDS} others (seeds = {SEEDS})."
    )
    if found.problem:
        return (
            f"The task could not be measured: {found.problem}. It is taken to depend on random "
            f"numbers: {chosen} Repair it, and run this again with --force."
        )
    return f"Measured combined_score: {found.why}. It depends on random numbers, so {chosen}"


def _copy(repo: Path, copy: Path) -> str:
    """Copy the files that git would commit; return the reason if they are too large, else ""."""
    files = list_files(repo)
    if sum((repo / path).stat().st_size for path in files) > _LARGEST_COPY:
        return f"the repository has more than {_LARGEST_COPY >> 30} GiB"
    for path in files:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(repo / path, copy / path)
    return ""


class _Failed(Exception):
    """The task gave no score, for the given reason."""


@dataclass(frozen=True, slots=True)
class _Trial:
    copy: Path
    command: str
    program: str
    timeout: float

    def run(self) -> Measurement:
        try:
            began = time.monotonic()
            first = self._score("0")
            again = self._score("0")
            if not same_measurement(first, again):
                samples = [first, again, *(self._score("0") for _ in range(_SAMPLES - 2))]
                why = f"{min(samples):.6g} to {max(samples):.6g} with the same seed"
                return Measurement(False, why, spread=statistics.stdev(samples))
            scores = [first]
            while len(scores) < 2 or (
                len(scores) < _MOST_SEEDS and time.monotonic() - began < _SECONDS_OF_SEEDS
            ):
                scores.append(self._score(str(len(scores))))
                if not same_measurement(first, scores[-1]):
                    why = (
                        f"{first:.6g} with seed 0 and {scores[-1]:.6g} with seed {len(scores) - 1}"
                    )
                    return Measurement(False, why)
            unseeded = self._score(None)
        except _Failed as problem:
            return Measurement(False, "", problem=str(problem))
        if not same_measurement(first, unseeded):
            why = f"{first:.6g} with a seed and {unseeded:.6g} without"
            return Measurement(False, why)
        perturbed = None
        for draws in _DRAWS:
            perturbed = self._perturbed(draws)
            if perturbed is None or same_measurement(first, perturbed):
                continue
            control = self._perturbed(CONTROL)
            if control is not None and not same_measurement(control, perturbed):
                why = (
                    f"{first:.6g}, and {perturbed:.6g} after a change that only draws random "
                    "numbers: a fixed seed hides its noise"
                )
                return Measurement(False, why)
        tried = "" if perturbed is None else ", and after a change that only draws random numbers"
        why = f"{first:.6g} with {len(scores)} seeds, without a seed{tried}"
        return Measurement(True, why)

    def read_mean_of(self) -> str:
        """Return the numbers of which the last sweep took the mean."""
        said = end_of(self._log).decode("utf-8", "replace").splitlines()
        lines = [line for line in said if line.startswith(_MEAN_OF)]
        return lines[-1].removeprefix(_MEAN_OF)[:_LONGEST_LIST] if lines else ""

    @property
    def _log(self) -> Path:
        return self.copy.parent / "sweep.log"

    def _perturbed(self, draws: int) -> float | None:
        """Return the score of a perturbed program; None where there is none."""
        path = self.copy / self.program
        source = path.read_bytes()
        try:
            text = perturb(source.decode("utf-8"), draws, block=True)
            if not self.program.endswith(".py") or text is None:
                return None
            write(path, text)
            return self._score("0")
        except (UnicodeDecodeError, _Failed):
            return None
        finally:
            path.write_bytes(source)

    def _score(self, seed: str | None) -> float:
        results = self.copy.parent / "results.csv"
        results.unlink(missing_ok=True)
        env = {name: v for name, v in os.environ.items() if not name.startswith("TREEWRIGHT_")}
        env |= {"TREEWRIGHT_RESULTS_CSV": str(results), "TREEWRIGHT_SWEEP_CONFIG_LIMIT": "1"}
        if seed is not None:
            env["TREEWRIGHT_SEED"] = seed
        done = process.run(
            self.command, cwd=self.copy, log_path=self._log, env=env, timeout=self.timeout
        )
        if done.timed_out:
            raise _Failed(f"it took longer than {self.timeout:g} s")
        try:
            with results.open(newline="", encoding="utf-8") as file:
                row = next(csv.DictReader(file))
            return float(row["combined_score"])
        except (OSError, StopIteration, ValueError, KeyError):
            said = end_of(self._log).decode("utf-8", "replace").strip().splitlines()
            last = said[-1].removeprefix("config 0: ") if said else "the sweep wrote no score"
            raise _Failed(last) from None
