"""`treewright init --from openevolve`: a task of that shape as a sweep and a treewright.toml.

The shape: a program with a marked block, an evaluator with `evaluate(program_path) -> dict`, and
perhaps a config.yaml. The block is what may change; all else in the directory decides.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath

from treewright.kernel.errors import UsageError
from treewright.tree.repository import blocks
from treewright.tree.repository.git import git
from treewright.tree.starter.survey import SWEEP, run_script
from treewright.tree.starter.template import OWN_SWEEP, quote, quoted_list

_EVALUATORS = ("evaluator.py", "evaluate.py")
_LARGEST_TEXT = 1 << 20
_DEFAULT_SECONDS = 300.0
_RULE = "# -- "


@dataclass(frozen=True, slots=True)
class Task:
    """What was found. Paths are relative to the repository, names to the task's directory."""

    directory: str
    program: str
    evaluator: str
    protected: list[str]
    seconds: float
    model: str | None
    endpoint: str | None

    def path(self, name: str) -> str:
        return str(PurePosixPath(self.directory) / name)


def find_task(repo: Path, directory: Path) -> Task:
    """Looks through a directory of the repository; says what is missing."""
    files = sorted(path for path in directory.iterdir() if path.is_file())
    evaluator = next((n for n in _EVALUATORS if _has_evaluate(directory / n)), None)
    if evaluator is None:
        raise UsageError(f"no evaluator.py with `def evaluate(program_path)` in {directory}")
    program = _program(directory, files, evaluator)
    inside = directory.resolve().relative_to(repo.resolve()).as_posix()
    settings = _text(directory / "config.yaml")
    return Task(
        directory=inside,
        program=program,
        evaluator=evaluator,
        protected=_protected(repo, inside, program),
        seconds=float(_setting(settings, "timeout") or _DEFAULT_SECONDS),
        model=_setting(settings, "primary_model") or _setting(settings, "- name"),
        endpoint=_setting(settings, "api_base"),
    )


def task_behind(repo: Path, script: str) -> Task | None:
    """The task whose evaluator a survey took for a sweep, if it is one that writes no CSV."""
    path = repo / script
    if "TREEWRIGHT_RESULTS_CSV" in _text(path):
        return None
    try:
        task = find_task(repo, path.parent)
    except UsageError:
        return None
    return task if task.evaluator == path.name else None


def sweep_script(task: Task) -> str:
    """The sweep of a task: `templates/sweep.py` with what `templates/openevolve.py` fills in."""
    whole, part = _template("sweep"), _template("openevolve")
    start, end = whole.index(f"{_RULE}yours"), whole.index(f"{_RULE}the rest")
    filled = part[part.index(f"{_RULE}the task") :].rstrip("\n")
    names = f"PROGRAM = {task.program!r}\nEVALUATOR = {task.evaluator!r}\n\n\n"
    text = whole[:start].rstrip("\n") + "\n" + names + filled + "\n\n\n" + whole[end:]
    for name, value in (
        ("ALL_CONFIGS = 24", "ALL_CONFIGS = 1"),
        ("SECONDS_A_CONFIG = 60.0", f"SECONDS_A_CONFIG = {task.seconds}"),
        ('"score"]', '"combined_score"]'),
        (_PROMISE, _LESSER_PROMISE),
    ):
        text = text.replace(name, value, 1)
    return text


_PROMISE = """\
A config is a question. The code that is searched answers it in a process of its own, which is
given the question and nothing else; the answer comes back over a pipe, and is judged here, where
that code has never run. So it can neither change how it is measured nor write results itself.
"""
_LESSER_PROMISE = """\
`evaluate` runs in a process of its own; what it returns comes back over a pipe and is checked
here. An evaluator that imports the program shares that process with it; one that starts the
program as a process of its own is out of its reach.
"""


def render(task: Task) -> str:
    """treewright.toml, which loads and runs as it is written."""
    sweep = task.path(SWEEP)
    return f"""\
# An OpenEvolve task: {task.path(task.program)} is measured by {task.path(task.evaluator)}.
# Every key is explained in Treewright's docs/configuration.md; `treewright doctor` checks them.

# The score of the program as it is now. `treewright tree --make-baseline` makes it.
baseline_csv = {quote(task.path("baseline.csv"))}

# Feeds, as TREEWRIGHT_SEED, the evaluator's random numbers.
seed = 0

# Only what stands between {blocks.START} and {blocks.END} of this file may change.
editable_blocks = {quoted_list([task.path(task.program)])}

# What decides. A candidate whose code changes one of these while it runs is rejected.
protected_paths = {quoted_list([*task.protected, sweep])}

[sweep]
command = {quote(run_script(sweep, ""))}
timeout_seconds = {task.seconds + 60:g}
{OWN_SWEEP}

# `evaluate` gives `combined_score`, or else numbers whose mean it is. The same code gives the same
# number: that is checked when a run starts. If it does not, say `repeats = 5` instead.
# An evaluator that imports the program runs in one process with it, and can be fooled there by what
# the program changes in memory. See "What treewright cannot prevent" in Treewright's
# docs/sweep-contract.md.
[[metrics]]
name = "combined_score"
direction = "maximize"
primary = true
deterministic = true
# What the score can be at all: one outside is a broken result, and no record.
# min = 0.0
# max = 1.0

{_ideas(task)}

# Who implements them. `patch` applies the diff that an idea carries and needs no model.
[agents.coder]
backend = "patch"

# For ideas in words, from a model or from people: docs/ideas.md, docs/agents.md.
# [[ideas]]
# source = "llm"
# endpoint = {_endpoint(task)}
#
# [agents.coder]
# backend = "openai"
# endpoint = {_endpoint(task)}
"""


def _ideas(task: Task) -> str:
    if task.program.endswith(".py"):
        return (
            "# Single edits to the numbers in the block, made offline: a start.\n"
            f'[[ideas]]\nsource = "mutate"\nfiles = {quoted_list([task.path(task.program)])}'
        )
    return (
        "# Make this directory and put an idea per .md file into it.\n"
        f'[[ideas]]\nsource = "directory"\npath = {quote(task.path("ideas"))}'
    )


def _endpoint(task: Task) -> str:
    address, model = task.endpoint or "https://...", task.model or "..."
    where = f"base_url = {quote(address)}, model = {quote(model)}"
    return f'{{ {where}, api_key_env = "MY_KEY_VARIABLE" }}'


def _program(directory: Path, files: list[Path], evaluator: str) -> str:
    marked = [path.name for path in files if blocks.has_block(_text(path))]
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


def _has_evaluate(path: Path) -> bool:
    try:
        tree = ast.parse(_text(path))
    except (SyntaxError, ValueError, RecursionError):
        return False
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(isinstance(node, kinds) and node.name == "evaluate" for node in tree.body)


def _protected(repo: Path, directory: str, program: str) -> list[str]:
    """All else in the directory: what the evaluator reads is there, if it is anywhere."""
    listed = git(
        repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", directory
    )
    base = PurePosixPath(directory)
    names = {
        PurePosixPath(path).relative_to(base).parts[0]
        for path in listed.split("\0")
        if path and PurePosixPath(path).is_relative_to(base)
    }
    left_out = {program, SWEEP, "baseline.csv", "treewright.toml"}
    return [str(base / name) for name in sorted(names - left_out)]


def _setting(yaml: str, name: str) -> str | None:
    """The first plain value of that name: enough for what people write there."""
    value = r"""['"]?([^'"#\n]+?)['"]?\s*(?:#.*)?$"""
    found = re.search(rf"^\s*{re.escape(name)}:\s*{value}", yaml, re.MULTILINE)
    return found[1] if found else None


def sweep_template() -> str:
    """A sweep with three functions to fill in."""
    return _template("sweep")


def _template(name: str) -> str:
    source = resources.files("treewright.tree.starter.templates") / f"{name}.py"
    return source.read_text(encoding="utf-8")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_TEXT).decode("utf-8", "replace")
    except OSError:
        return ""
