"""Tasks of OpenEvolve and ShinkaEvolve: a program with a marked block, which an evaluator scores.

Only the block may change; everything else in the directory decides.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from treewright.kernel.errors import UsageError
from treewright.tree.ideas.tunable_literals import Site, Value, find_sites
from treewright.tree.repository import blocks
from treewright.tree.starter.survey import SWEEP
from treewright.tree.starter.task import (
    Bound,
    Models,
    Task,
    defined_names,
    directory_of,
    fill_in,
    others,
    path_in,
    read_settings,
    read_text,
)
from treewright.tree.starter.yaml_subset import look_up

_EVALUATORS = ("evaluator.py", "evaluate.py")
_DEFAULT_SECONDS = 300.0
_DEFAULT_THRESHOLDS = [0.5, 0.75, 0.9]
_DEFAULT_FEATURES = ["complexity", "diversity"]
_ARTIFACT_CHARS = 1000
_FACTORS = (0.5, 2.0)
_OPTIONS = re.compile(r"^[ \t]*#[ \t]*(\w+):[ \t]*(\[.*\])[ \t]*$", re.MULTILINE)
_IMPORTING_NOTE = [
    "`evaluate` gives `combined_score`, or else numbers whose mean it is.",
    "An evaluator that imports the program runs in one process with it, and can be fooled there",
    'by what the program changes in memory. See "What treewright cannot prevent" in Treewright\'s',
    "docs/sweep-contract.md.",
]


_EVALUATOR = "evaluate.py"


def find_openevolve(repo: Path, directory: Path) -> Task:
    """Return the task in a directory of the repository.

    Raises:
        UsageError: a part of the task is missing; the message names it.
    """
    evaluator = next((n for n in _EVALUATORS if "evaluate" in defined_names(directory / n)), None)
    if evaluator is None:
        raise UsageError(f"no evaluator.py with `def evaluate(program_path)` in {directory}")
    program = find_program(directory, evaluator)
    inside = directory_of(repo, directory)
    path = path_in(inside, program)
    found = sorted(directory.glob("config*.y*ml"), key=lambda path: (len(path.name), path.name))
    settings = read_settings(found[0] if found else directory / "config.yaml")
    seconds = float(look_up(settings, "evaluator", "timeout") or _DEFAULT_SECONDS)
    stages = _stages(settings, defined_names(directory / evaluator))
    seconds *= max(1, len(stages))
    seed = look_up(settings, "random_seed")
    names_score = '"combined_score"' in _evaluate_text(read_text(directory / evaluator))
    constants = {
        "PROGRAM": program,
        "EVALUATOR": evaluator,
        "STAGES": stages,
        "ARTIFACT_CHARS": _artifact_chars(settings),
        "SCORE_OF": "combined_score" if names_score else "",
        "FEATURES": _features(settings),
        "EVERY_CONFIG_IS_A_SEED": False,
    }
    source = read_text(directory / program) if program.endswith(".py") else ""
    options = read_options(source)
    return Task(
        layout="OpenEvolve",
        directory=inside,
        program=path,
        tunable=[path] if _sites(source, _FACTORS, options) else [],
        options=options,
        has_block=True,
        measured_by=path_in(inside, evaluator),
        sweep=fill_in("openevolve", constants, ["combined_score"], seconds),
        seconds=seconds,
        protected=others(repo, inside, [program]),
        instructions=_instructions(settings),
        models=read_models(settings),
        seed=seed if isinstance(seed, int) and not isinstance(seed, bool) else 0,
        notes=_IMPORTING_NOTE,
    )


def find_program(directory: Path, evaluator: str) -> str:
    """Return the name of the file with a marked block."""
    files = sorted(path for path in directory.iterdir() if path.is_file())
    marked = [path.name for path in files if blocks.has_block(read_text(path))]
    marked = [name for name in marked if name not in (evaluator, SWEEP)]
    marked.sort(key=lambda name: not name.startswith("initial"))
    if not marked:
        raise UsageError(
            f"no file in {directory} has lines with {blocks.START} and {blocks.END}; mark the part "
            "of the program that may change"
        )
    if len(marked) > 1 and not marked[0].startswith("initial"):
        raise UsageError(
            f"{marked[0]} and {marked[1]} in {directory} both have a marked block; call the "
            "program initial_program"
        )
    return marked[0]


def read_models(settings: Any) -> Models:
    """Return the models of a `config.yaml` with their weights."""
    llm = look_up(settings, "llm")
    weights: dict[str, float] = {}
    for entry in look_up(llm, "models") or []:
        if isinstance(entry, dict) and entry.get("name"):
            weights[str(entry["name"])] = float(entry.get("weight", 1.0))
    for which, default in (("primary_model", 1.0), ("secondary_model", 0.2)):
        name, weight = look_up(llm, which), look_up(llm, f"{which}_weight")
        if name:
            weights[str(name)] = default if weight is None else float(weight)
    variable = re.fullmatch(r"\$\{(\w+)\}", str(look_up(llm, "api_key") or ""))
    return Models(
        {name: weight for name, weight in weights.items() if weight > 0},
        look_up(llm, "api_base"),
        variable[1] if variable else None,
    )


def read_options(source: str) -> dict[str, list[Value]]:
    """Return the alternatives that comments in the block list for a value: `# NAME: ["a", "b"]`."""
    found: dict[str, list[Value]] = {}
    for name, listed in _OPTIONS.findall(source):
        try:
            values = ast.literal_eval(listed)
        except (ValueError, SyntaxError):
            continue
        is_usable = [
            math.isfinite(value) if isinstance(value, int | float) else isinstance(value, str)
            for value in values
        ]
        if len(values) > 1 and all(is_usable):
            found[name] = values
    return {name: values for name, values in found.items() if _sites(source, (), {name: values})}


def _sites(
    source: str, factors: Sequence[float], options: Mapping[str, Sequence[Value]]
) -> list[Site]:
    """Return the places in the block that `mutate` can edit."""
    data = source.encode()
    try:
        sites = find_sites(data, factors, options)
    except (SyntaxError, ValueError, RecursionError):
        return []
    inside = blocks.spans(data)
    return [s for s in sites if any(start <= s.start and s.end <= end for start, end in inside)]


def _evaluate_text(source: str) -> str:
    """Return the text of `evaluate`, with single quotes written as double ones."""
    body = ast.parse(source).body
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in body if isinstance(node, kinds) and node.name == "evaluate"]
    return "".join(ast.get_source_segment(source, node) or "" for node in found).replace("'", '"')


def _stages(settings: Any, functions: set[str]) -> list[tuple[str, float | None]]:
    """Return the functions of a cascade, each with the score from which on the next one runs."""
    if look_up(settings, "evaluator", "cascade_evaluation") is False:
        return []
    thresholds = look_up(settings, "evaluator", "cascade_thresholds")
    if not isinstance(thresholds, list):
        thresholds = _DEFAULT_THRESHOLDS
    names: list[str] = []
    for number in (1, 2, 3):
        if f"evaluate_stage{number}" not in functions:
            break
        names.append(f"evaluate_stage{number}")
    if len(names) == 1:
        names.append("evaluate")
    names = names[: len(thresholds) + 1]
    # The last stage has nothing behind it that a threshold could save.
    limits = [*map(float, thresholds[: max(0, len(names) - 1)]), None]
    return list(zip(names, limits, strict=False))


def _features(settings: Any) -> list[str]:
    """Return the metrics that describe a program and do not count for its score."""
    names = look_up(settings, "database", "feature_dimensions")
    return [str(name) for name in names] if isinstance(names, list) else _DEFAULT_FEATURES


def _artifact_chars(settings: Any) -> int:
    if look_up(settings, "prompt", "include_artifacts") is False:
        return 0
    most = look_up(settings, "prompt", "max_artifact_bytes")
    return most if isinstance(most, int) else _ARTIFACT_CHARS


def _instructions(settings: Any) -> str:
    for keys in (("prompt", "system_message"), ("llm", "system_message")):
        text = look_up(settings, *keys)
        if isinstance(text, str) and " " in text.strip():
            return text.strip("\n").rstrip()
    return ""


def find_shinka(repo: Path, directory: Path) -> Task:
    """Return the task in a directory of the repository.

    Raises:
        UsageError: a part of the task is missing; the message names it.
    """
    text = read_text(directory / _EVALUATOR)
    if "metrics.json" not in text and "run_shinka_eval" not in text:
        raise UsageError(f"no {_EVALUATOR} in {directory} that writes metrics.json")
    program = find_program(directory, _EVALUATOR)
    inside = directory_of(repo, directory)
    path = path_in(inside, program)
    runner = _runner_settings(directory)
    settings = [read_settings(path) for path in sorted(directory.glob("*.y*ml"))]
    told = [look_up(each, "evo_config", "task_sys_msg") for each in settings]
    told.append(runner.get("task_sys_msg"))
    listed = [look_up(each, "evo_config", "llm_models") for each in settings]
    models = next((x for x in [*listed, runner.get("llm_models")] if isinstance(x, list)), [])
    seconds = _DEFAULT_SECONDS
    if limit := re.fullmatch(r"(\d+):(\d+):(\d+)", str(runner.get("time"))):
        hours, minutes, rest = map(int, limit.groups())
        seconds = float(3600 * hours + 60 * minutes + rest) or _DEFAULT_SECONDS
    columns = ["combined_score", "correct"]
    constants = {"PROGRAM": program, "EVALUATOR": _EVALUATOR}
    return Task(
        layout="ShinkaEvolve",
        directory=inside,
        program=path,
        tunable=[path] if path.endswith(".py") else [],
        has_block=True,
        measured_by=path_in(inside, _EVALUATOR),
        sweep=fill_in("shinka", constants, columns, seconds),
        seconds=seconds,
        bounds=[Bound("correct", "`correct.json` must say that the program is correct.", min=1)],
        protected=others(repo, inside, [program]),
        instructions=next((text.strip() for text in told if isinstance(text, str)), ""),
        models=Models({name: 1.0 for name in models if isinstance(name, str)}),
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
