"""Tasks that a command measures by printing a number, also those of autoresearch and evo."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any, Literal

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text.printable import format_paths
from treewright.tree.starter.survey import Column, Survey, python_name, time_budget
from treewright.tree.starter.task import (
    CLOCK,
    Bound,
    Task,
    directory_of,
    fill_in,
    others,
    path_in,
    read_text,
)

NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
"""A pattern that finds a number."""
_DEFAULT_SECONDS = 1800.0


def find_autoresearch(repo: Path, directory: Path) -> Task:
    """Return a task in the layout of autoresearch.

    `train.py` may change; `prepare.py` has the data, the metric and the time that training may
    take; `program.md` tells an agent what to do.

    Raises:
        UsageError: a part of the task is missing; the message names it.
    """
    missing = [n for n in ("train.py", "prepare.py", "program.md") if not (directory / n).is_file()]
    if missing:
        raise UsageError(f"no {missing[0]} in {directory}")
    told = read_text(directory / "program.md")
    inside = directory_of(repo, directory)
    metric = _printed_metric(told + read_text(directory / "train.py"))
    direction = "maximize" if re.search(r"\bhighest\b", told) else "minimize"
    command = f"{python_name()} train.py"
    if "uv run train.py" in told and shutil.which("uv"):
        command = "uv run train.py"
    texts = (read_text(directory / name) for name in ("prepare.py", "train.py"))
    budget = next(filter(None, map(time_budget, texts)), None)
    seconds = 2 * budget + 60 if budget else _DEFAULT_SECONDS
    program = path_in(inside, "train.py")
    constants = {"COMMAND": command, "PATTERN": rf"(?m)^{metric}:\s*{NUMBER}", "METRIC": metric}
    return Task(
        layout="autoresearch",
        directory=inside,
        program=program,
        tunable=[program],
        measured_by=f"`{command}`",
        sweep=fill_in("printed_number", constants, [metric, CLOCK], seconds),
        seconds=seconds,
        metric=metric,
        direction=direction,
        repeats=3,
        bounds=_clock_bounds(budget),
        protected=others(repo, inside, ["train.py"]),
        readable=[path_in(inside, name) for name in ("prepare.py", "program.md")],
        instructions=(
            f"{'Raise' if direction == 'maximize' else 'Lower'} {metric}, which `{command}` prints "
            f"when training has ended. Change only {program}: architecture, optimizer, "
            "hyperparameters, training loop. The time that training may take is fixed."
        ),
        notes=[f"The last `{metric}: NUMBER` that the command prints."],
    )


def find_evo(repo: Path, directory: Path) -> Task:
    """Return the task that `evo init` wrote down in `.evo`.

    Raises:
        UsageError: there is no `.evo` with a target and a benchmark.
    """
    home = directory / ".evo"
    active = _json(home / "meta.json").get("active")
    settings = _json(home / active / "config.json") if isinstance(active, str) else {}
    settings = settings or _json(home / "config.json")
    target, benchmark = settings.get("target"), settings.get("benchmark")
    if not isinstance(target, str) or not isinstance(benchmark, str):
        raise UsageError(f"no .evo/config.json with `target` and `benchmark` in {directory}")
    inside = directory_of(repo, directory)
    program = path_in(inside, target)
    gate = settings.get("gate")
    tests = None
    if isinstance(gate, str) and gate.strip():
        tests = gate.replace("{worktree}", ".").replace("{target}", shlex.quote(target))
        if inside != ".":
            tests = f"cd {shlex.quote(inside)} && {tests}"
    named = [*_files_named(directory, benchmark), *_files_named(directory, str(gate or ""))]
    protected = [path_in(inside, name) for name in dict.fromkeys(named)]
    constants = {"COMMAND": benchmark, "TARGET": target}
    return Task(
        layout="evo",
        directory=inside,
        program=program,
        tunable=[f"{program}/**/*.py"]
        if (directory / target).is_dir()
        else [program]
        if program.endswith(".py")
        else [],
        measured_by=f"`{benchmark}`",
        sweep=fill_in("evo", constants, ["score"], _DEFAULT_SECONDS),
        seconds=_DEFAULT_SECONDS,
        metric="score",
        direction="minimize" if settings.get("metric") == "min" else "maximize",
        protected=[path for path in protected if path != program],
        instructions=f"Improve the score of {target}, which `{benchmark}` measures.",
        tests=tests,
        notes=["`score` of the JSON object that the benchmark prints or writes."],
    )


def task_of_command(
    repo: Path,
    found: Survey,
    command: str,
    pattern: str,
    direction: Literal["minimize", "maximize"] | None,
) -> Task:
    """Return the task of lowering or raising the number that a command prints.

    Args:
        repo: The repository; the command runs in its root.
        found: The survey of the repository.
        command: A shell command.
        pattern: A regular expression; its first group, or else all of it, is the number.
        direction: Which numbers are better; judged by the name of the metric if None.

    Raises:
        UsageError: the pattern is no regular expression.
    """
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise UsageError(f"--pattern {pattern!r} is not a regular expression: {error}") from None
    metric = next(iter(groups), None) or _name_in(pattern)
    named = _files_named(repo, command)
    programs = [path for path in found.tunable if path not in found.protected]
    judges = [path for path in named if path not in programs or len(programs) > 1]
    programs = [path for path in programs if path not in judges]
    texts = (read_text(path) for path in sorted(repo.glob("*.py")))
    budget = next(filter(None, map(time_budget, texts)), None)
    seconds = 2 * budget + 60 if budget else _DEFAULT_SECONDS
    constants = {"COMMAND": command, "PATTERN": pattern, "METRIC": metric}
    direction = direction or Column(metric).direction
    return Task(
        layout="a command that prints a number",
        directory=".",
        program=format_paths(programs) if programs else "the code",
        tunable=programs,
        measured_by=f"`{command}`",
        sweep=fill_in("printed_number", constants, [metric, CLOCK], seconds),
        seconds=seconds,
        metric=metric,
        direction=direction,
        bounds=_clock_bounds(budget),
        protected=list(dict.fromkeys([*judges, *found.protected])),
        instructions=f"{direction.capitalize()} {metric}, which `{command}` prints.",
        tests=found.tests_command,
        notes=[f"The last match of {pattern!r} in what the command prints."],
    )


def _clock_bounds(budget: float | None) -> list[Bound]:
    """A candidate that trains for longer is better for no good reason."""
    if budget is None:
        return []
    most = 1.2 * budget + 30 if budget >= 60 else 1.5 * budget + 1
    comment = (
        f"The wall-clock time of the command, whose time budget is {budget:g} s. A candidate that\n"
        "extends its own clock breaks this. Set `max` a little above what the baseline needs."
    )
    return [Bound(CLOCK, comment, max=most)]


def _printed_metric(text: str) -> str:
    """Return the first `name:` that the result is looked up by."""
    found = re.search(r"grep \"\^(\w+):", text) or re.search(r"print\(f\"(\w+):\s+\{", text)
    return found[1] if found else "val_bpb"


def _name_in(pattern: str) -> str:
    plain = re.sub(r"\\[a-zA-Z]|\[[^\]]*\]", " ", pattern)
    found = re.search(r"[A-Za-z][A-Za-z0-9_]+", plain.replace("(?", "( "))
    return found[0].lower() if found else "metric"


def _files_named(directory: Path, command: str) -> list[str]:
    """Return the files of a directory that a command names."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    cleaned = (word.removeprefix("{worktree}/").removeprefix("./") for word in words)
    return [word for word in cleaned if not word.startswith("/") and (directory / word).is_file()]


def _json(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(read_text(path) or "{}")
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    return found if isinstance(found, dict) else {}
