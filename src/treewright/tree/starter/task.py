"""A task that was written for another program, and the sweep and configuration made of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from treewright.kernel.errors import UsageError
from treewright.tree.repository.git import git
from treewright.tree.starter.survey import SWEEP
from treewright.tree.starter.yaml_subset import UnreadableYaml, read_yaml

CLOCK = "seconds"
"""The column with the wall-clock time of a sweep's command."""
_LARGEST_TEXT = 1 << 20
_RULE = "# -- "


@dataclass(frozen=True, slots=True)
class Bound:
    """A column that must stay within bounds: a constraint of the configuration."""

    name: str
    comment: str
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class Models:
    """The chat models that the other program was set up with."""

    weights: dict[str, float] = field(default_factory=dict)
    address: str | None = None
    key_variable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as it was found.

    Paths are relative to the repository; `directory` is "." for its root. `sweep` is the text of
    the sweep that measures the task.
    """

    layout: str
    directory: str
    program: str
    """The file or directory that may change, in words for the user."""
    tunable: list[str]
    """Python files with values that `mutate` can edit; patterns as for `mutate`."""
    options: dict[str, list[str | bool | int | float]] = field(default_factory=dict)
    """Alternatives for named values, as `mutate` takes them."""
    has_block: bool = False
    """Only marked blocks of the program may change."""
    measured_by: str
    sweep: str
    seconds: float
    """The longest that the sweep may take."""
    metric: str = "combined_score"
    direction: Literal["minimize", "maximize"] = "maximize"
    repeats: int | None = None
    """The number of sweeps of a candidate; None for a metric that is the same each time."""
    seeds: int | None = None
    """The number of seeds on which candidate and parent are compared; each config is a seed."""
    tolerance: float | None = None
    """The least gain that counts, if the noise was measured."""
    heldout_seeds: int | None = None
    """The number of other seeds on which a gain has to show."""
    noise: list[str] = field(default_factory=list)
    """The measurement, and the reason for the comparison: comments of the metric."""
    bounds: list[Bound] = field(default_factory=list)
    protected: list[str]
    readable: list[str] = field(default_factory=list)
    instructions: str = ""
    """The task in words, for the prompts of models."""
    models: Models = field(default_factory=Models)
    tests: str | None = None
    seed: int = 0
    notes: list[str] = field(default_factory=list)
    """Comments about the sweep, for the metric in the configuration."""

    @property
    def sweep_path(self) -> str:
        """The path at which `init` writes the sweep."""
        return path_in(self.directory, SWEEP)


def path_in(directory: str, name: str) -> str:
    """Return the path of a file of a directory of the repository, which "." stands for."""
    return name if directory == "." else f"{directory}/{name}"


def directory_of(repo: Path, directory: Path) -> str:
    """Return a directory relative to its repository."""
    return directory.resolve().relative_to(repo.resolve()).as_posix()


def others(repo: Path, directory: str, left_out: Sequence[str]) -> list[str]:
    """Return all other entries of a directory, to be protected as the files that decide."""
    listed = git(
        repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", directory
    )
    base = PurePosixPath(directory)
    names = {
        PurePosixPath(path).relative_to(base).parts[0]
        for path in listed.split("\0")
        if path and PurePosixPath(path).is_relative_to(base)
    }
    made_here = {SWEEP, "baseline.csv", "treewright.toml"}
    return [str(base / name) for name in sorted(names - made_here - set(left_out))]


def fill_in(part: str, constants: dict[str, Any], columns: Sequence[str], seconds: float) -> str:
    """Return `templates/sweep.py` with the functions of another template filled in.

    Args:
        part: The name of the template with `question`, `answer` and `judge`.
        constants: Values of names that these functions use.
        columns: The metrics that `judge` returns.
        seconds: The longest that the one config may take.
    """
    whole, own = read_template("sweep"), read_template(part)
    start, end = whole.index(f"{_RULE}yours"), whole.index(f"{_RULE}the rest")
    functions = own[own.index(f"{_RULE}the task") :].rstrip("\n")
    names = "".join(f"{name} = {value!r}\n" for name, value in constants.items())
    text = whole[:start].rstrip("\n") + f"\n{names}\n\n{functions}\n\n\n{whole[end:]}"
    listed = ", ".join(f'"{name}"' for name in columns)
    for before, after in (
        ("ALL_CONFIGS = 24", "ALL_CONFIGS = 1"),
        ("SECONDS_A_CONFIG = 60.0", f"SECONDS_A_CONFIG = {seconds}"),
        ('"score"]', f"{listed}]"),
        (_PROMISE, _LESSER_PROMISE),
    ):
        text = text.replace(before, after, 1)
    return text


_PROMISE = """\
A config is a question. The code that is searched answers it in a separate process, which gets only
the question; the answer comes back over a pipe and is judged in this process, where that code never
runs. So the code can neither change how it is measured nor write results itself.
"""
_LESSER_PROMISE = """\
The measurement runs in a process of its own; what it returns comes back over a pipe and is checked
here. An evaluator that imports the program shares that process with it; one that starts the
program as a process of its own is out of its reach.
"""


def read_template(name: str) -> str:
    """Return the text of a file of `templates/`."""
    source = resources.files("treewright.tree.starter.templates") / f"{name}.py"
    return source.read_text(encoding="utf-8")


def defined_names(path: Path) -> set[str]:
    """Return the functions at the top of a Python file; none of a file that is not Python."""
    try:
        tree = ast.parse(read_text(path))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def read_settings(path: Path) -> Any:
    """Return a YAML file; nothing where there is none."""
    try:
        return read_yaml(read_text(path))
    except UnreadableYaml as error:
        raise UsageError(
            f"{path} cannot be read at {error}; write that line as plain `key: value`, or move the "
            "file away and edit treewright.toml by hand"
        ) from None


def read_text(path: Path) -> str:
    """Return the start of a file; "" where there is none."""
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_TEXT).decode("utf-8", "replace")
    except OSError:
        return ""
