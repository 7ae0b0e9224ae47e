"""`treewright init`: write a commented treewright.toml for a repository."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from treewright.cli.options import DIRECTORY, command, option
from treewright.cli.output import echo
from treewright.kernel.errors import UsageError

if TYPE_CHECKING:
    from treewright.tree.starter import Task

_LAYOUTS = ("openevolve", "shinka", "autoresearch", "evo")


@command()
@option(
    "--repo",
    type=DIRECTORY,
    default_text="the current directory",
    help="Any directory inside the target repository.",
)
@option("--force", is_flag=True, help="Replace existing files.")
@option(
    "--from",
    "origin",
    type=click.Choice(_LAYOUTS),
    default_text="the one that is recognised",
    help="Convert the task in DIRECTORY, which was written for this program.",
)
@option(
    "--metric-command",
    metavar="CMD",
    help="Measure candidates with a shell command that prints a number; needs --pattern.",
)
@option(
    "--pattern",
    metavar="REGEX",
    help="With --metric-command: find the number; the last match counts, its first group if any.",
)
@option(
    "--direction",
    type=click.Choice(["minimize", "maximize"]),
    default_text="by the metric's name",
    help="With --metric-command: which numbers are better.",
)
@option(
    "--sweep-template/--no-sweep-template",
    default=None,
    default_text="yes, if no sweep is found",
    help="Write a sweep to fill in, which runs each config in a separate process.",
)
@option(
    "--seeds",
    is_flag=True,
    help="Compare an OpenEvolve task over several seeds, without measuring it first.",
)
@click.argument("directory", required=False, type=DIRECTORY)
def init(
    repo: Path | None,
    force: bool,
    origin: str | None,
    metric_command: str | None,
    pattern: str | None,
    direction: Literal["minimize", "maximize"] | None,
    sweep_template: bool | None,
    seeds: bool,
    directory: Path | None,
) -> None:
    """Write a commented treewright.toml for a repository.

    A task of OpenEvolve, ShinkaEvolve, autoresearch or evo is recognised, and a sweep that calls
    its evaluator is written with the configuration. With --from, the task in DIRECTORY is taken.

    An OpenEvolve task is measured a few times, in a copy, to see whether its score depends on
    random numbers. If it does, candidates are compared over several seeds.

    With --metric-command CMD --pattern REGEX, a sweep is written that runs CMD and reads the number
    that it prints.

    In any other repository, init looks for tests, a sweep that writes results, and code to improve.
    Settings that it cannot find out are marked FILL_IN in the file, and listed with their lines. If
    there is no sweep, it also writes one to fill in, which candidates cannot manipulate.
    """
    from treewright.tree.repository.git import find_repository
    from treewright.tree.starter import LAYOUTS, survey, task_of_command

    _check_options(repo, origin, metric_command, pattern, direction, sweep_template, directory)
    place = directory or repo or Path(".")
    root = find_repository(place)
    if origin is not None:
        _write_task(root, LAYOUTS[origin](root, place), force, seeds=seeds)
    elif metric_command is not None and pattern is not None:
        found = survey(root)
        _write_task(root, task_of_command(root, found, metric_command, pattern, direction), force)
    elif sweep_template is None and (task := _recognised(root)) is not None:
        echo(f"{task.program} is a task of {task.layout}, measured by {task.measured_by}.")
        _write_task(root, task, force, seeds=seeds)
    else:
        _write_survey(root, sweep_template, force)


def _check_options(
    repo: Path | None,
    origin: str | None,
    metric_command: str | None,
    pattern: str | None,
    direction: str | None,
    sweep_template: bool | None,
    directory: Path | None,
) -> None:
    if origin is None and directory is not None:
        raise UsageError("DIRECTORY goes with --from; name a repository with --repo")
    if origin is not None and repo is not None:
        raise UsageError("--repo does not go with --from: DIRECTORY names the task")
    if origin is not None and sweep_template:
        raise UsageError("--sweep-template does not go with --from, which writes a sweep anyway")
    if (metric_command is None) != (pattern is None):
        raise UsageError("give --metric-command and --pattern together")
    if metric_command is not None and (origin is not None or sweep_template):
        other = "--from" if origin is not None else "--sweep-template"
        raise UsageError(f"--metric-command does not go with {other}: both write the sweep")
    if direction is not None and metric_command is None:
        raise UsageError("--direction goes with --metric-command")


def _recognised(root: Path) -> Task | None:
    """Return the one task of another program; None in a repository that has a sweep."""
    from treewright.tree.starter import LAYOUTS, SWEEP, recognise, survey

    script = survey(root).sweep_script
    if script is not None and Path(script).name != SWEEP:
        return None
    tasks = recognise(root)
    if tasks and (len(tasks) == 1 or tasks[0][1].resolve() == root.resolve()):
        name, directory = tasks[0]
        return LAYOUTS[name](root, directory)
    if tasks:
        echo("This repository has several tasks of other programs. To take one of them:")
        for name, directory in tasks[:10]:
            echo(f"  treewright init --force --from {name} {directory.relative_to(root)}")
    return None


def _write_task(root: Path, task: Task, force: bool, *, seeds: bool = False) -> None:
    from treewright.tree import config
    from treewright.tree.starter import measurement, render_task

    path = root / config.DEFAULT_NAME
    _check_absent([path, root / task.sweep_path], force)
    if task.layout == "OpenEvolve":
        found = measurement.Measurement(is_exact=False, why="--seeds was given")
        if not seeds:
            echo(
                f"Measuring {task.program} a few times, at most {task.seconds:g} s each "
                "(--seeds leaves that out)"
            )
            found = measurement.measure(root, task)
        task = measurement.apply(task, found)
        echo(f"{measurement.explain(found)}\n")
        if not task.tunable:
            echo(f"{task.program} has no numbers that `mutate` can edit: a model proposes ideas.\n")
        if found.mean_of:
            echo(f"Warning: {measurement.warn(found)}\n")
    _write({path: render_task(task), root / task.sweep_path: task.sweep}, force)
    config.load(path)
    _print_next_steps(path, [], has_baseline=False)


def _write_survey(root: Path, sweep_template: bool | None, force: bool) -> None:
    from treewright.tree import config
    from treewright.tree.starter import SWEEP, read_template, render_survey, survey

    path = root / config.DEFAULT_NAME
    _check_absent([path], force)
    found = survey(root)
    steps: list[str] = []
    for script in found.not_sweeps:
        echo(f"{script} is not taken as the sweep: it writes no results to TREEWRIGHT_RESULTS_CSV.")
    if sweep_template or (sweep_template is None and found.sweep_script is None):
        _write({root / SWEEP: read_template("sweep")}, force)
        steps = [f"{SWEEP}: `question`, `answer` and `judge`"]
        found = survey(root)
    _write({path: render_survey(found)}, force)
    config.load(path)
    _print_next_steps(path, steps, has_baseline=found.results_csv is not None)


def _check_absent(paths: Iterable[Path], force: bool) -> None:
    for path in paths:
        if path.exists() and not force:
            raise UsageError(f"{path} exists; edit it, or replace it with --force")


def _write(files: dict[Path, str], force: bool) -> None:
    from treewright.kernel.storage import atomic

    _check_absent(files, force)
    for path, text in files.items():
        atomic.write_text(path, text)
        echo(f"Wrote {path}")


def _print_next_steps(path: Path, steps: list[str], *, has_baseline: bool) -> None:
    from treewright.tree import config

    text = path.read_text(encoding="utf-8")
    steps = steps + [
        f"{config.DEFAULT_NAME}, line {number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), start=1)
        if config.FILL_IN in line and not line.startswith("#")
    ]
    echo("\nNext:")
    if steps:
        echo("  fill in what only you know:")
        for step in steps:
            echo(f"    {step}")
    baseline = "" if has_baseline else "--make-baseline "
    for call, purpose in (
        ("git add --all && git commit -m 'Add a search'", ""),
        ("treewright doctor", "what is ready, what is missing"),
        ("treewright tree --dry-run", "the search with made-up results"),
        (f"treewright tree {baseline}--until-done", "the search"),
    ):
        echo(f"  {call:<45}  {purpose}".rstrip())
