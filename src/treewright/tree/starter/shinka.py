"""Tasks of ShinkaEvolve.

A program `initial.*` with a marked block, and an `evaluate.py` that is run with `--program_path`
and `--results_dir` and writes `metrics.json` and `correct.json`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from treewright.kernel.errors import UsageError
from treewright.tree.starter.openevolve import find_program
from treewright.tree.starter.task import (
    Bound,
    Models,
    Task,
    directory_of,
    fill_in,
    others,
    read_settings,
    read_text,
)
from treewright.tree.starter.yaml_subset import look_up

_EVALUATOR = "evaluate.py"
_DEFAULT_SECONDS = 300.0


def find_task(repo: Path, directory: Path) -> Task:
    """Return the task in a directory of the repository.

    Raises:
        UsageError: a part of the task is missing; the message names it.
    """
    text = read_text(directory / _EVALUATOR)
    if "metrics.json" not in text and "run_shinka_eval" not in text:
        raise UsageError(f"no {_EVALUATOR} in {directory} that writes metrics.json")
    program = find_program(directory, _EVALUATOR)
    inside = directory_of(repo, directory)
    path = program if inside == "." else f"{inside}/{program}"
    runner = _runner_settings(directory)
    settings = [read_settings(path) for path in sorted(directory.glob("*.y*ml"))]
    seconds = _seconds(runner.get("time"))
    columns = ["combined_score", "correct"]
    constants = {"PROGRAM": program, "EVALUATOR": _EVALUATOR}
    return Task(
        layout="ShinkaEvolve",
        directory=inside,
        program=path,
        tunable=[path] if path.endswith(".py") else [],
        has_block=True,
        measured_by=_EVALUATOR if inside == "." else f"{inside}/{_EVALUATOR}",
        sweep=fill_in("shinka", constants, columns, seconds),
        seconds=seconds,
        bounds=[Bound("correct", "`correct.json` must say that the program is correct.", min=1)],
        protected=others(repo, inside, [program]),
        instructions=_first_text("task_sys_msg", settings, runner),
        models=Models(dict.fromkeys(_models(settings, runner), 1.0)),
        notes=["`combined_score` of metrics.json, which evaluate.py writes."],
    )


def _runner_settings(directory: Path) -> dict[str, Any]:
    """Return the constants that `run_evo.py` passes by keyword or gives a name."""
    try:
        tree = ast.parse(read_text(directory / "run_evo.py"))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg:
            names, value = [node.arg], node.value
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            value = node.value
        else:
            continue
        try:
            constant = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            continue
        for name in names:
            key = "task_sys_msg" if name.endswith("sys_msg") else name
            found.setdefault(key, constant)
    return found


def _first_text(key: str, settings: list[Any], runner: dict[str, Any]) -> str:
    found = [look_up(each, "evo_config", key) for each in settings] + [runner.get(key)]
    return next((text.strip() for text in found if isinstance(text, str)), "")


def _models(settings: list[Any], runner: dict[str, Any]) -> list[str]:
    found = [look_up(each, "evo_config", "llm_models") for each in settings]
    lists = [each for each in [*found, runner.get("llm_models")] if isinstance(each, list)]
    return [name for name in lists[0] if isinstance(name, str)] if lists else []


def _seconds(time: Any) -> float:
    found = re.fullmatch(r"(\d+):(\d+):(\d+)", str(time))
    if found is None:
        return _DEFAULT_SECONDS
    hours, minutes, seconds = map(int, found.groups())
    return float(3600 * hours + 60 * minutes + seconds) or _DEFAULT_SECONDS
