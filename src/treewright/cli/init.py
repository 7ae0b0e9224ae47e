"""`treewright init`: write a commented treewright.toml for a repository."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from treewright.cli.options import DIRECTORY, command, option
from treewright.cli.output import echo
from treewright.kernel.errors import UsageError


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
    type=click.Choice(["openevolve"]),
    help="Convert a task for this program, in DIRECTORY.",
)
@option(
    "--sweep-template/--no-sweep-template",
    default=None,
    default_text="yes, if no sweep is found",
    help="Write a sweep to fill in, which runs each config in a separate process.",
)
@click.argument("directory", required=False, type=DIRECTORY)
def init(
    repo: Path | None,
    force: bool,
    origin: str | None,
    sweep_template: bool | None,
    directory: Path | None,
) -> None:
    """Write a commented treewright.toml for a repository.

    Looks for tests, a sweep script, results and code to improve. Settings that it cannot find out
    are marked FILL_IN in the file, and listed with their lines. If there is no sweep, it also
    writes one to fill in, which candidates cannot manipulate.

    With --from openevolve, DIRECTORY has a program with an EVOLVE-BLOCK and an evaluator.py. The
    command writes a sweep that calls the evaluator into the same directory.
    """
    from treewright.tree import config
    from treewright.tree.repository.git import find_repository
    from treewright.tree.starter import openevolve, render, survey

    if origin is None and directory is not None:
        raise UsageError("DIRECTORY goes with --from; name a repository with --repo")
    if origin is not None and repo is not None:
        raise UsageError("--repo does not go with --from: DIRECTORY names the task")
    if origin is not None and sweep_template:
        raise UsageError("--sweep-template does not go with --from, which writes a sweep anyway")
    start = directory or repo or Path(".")
    root = find_repository(start)
    path = root / config.DEFAULT_NAME
    steps: list[str] = []
    if origin is None:
        _check_absent([path], force)
        found = survey(root)
        if sweep_template or (sweep_template is None and found.sweep_script is None):
            _write({root / openevolve.SWEEP: openevolve.sweep_template()}, force)
            steps = [f"{openevolve.SWEEP}: `question`, `answer` and `judge`"]
            found = survey(root)
        _write({path: render(found)}, force)
        has_baseline = found.results_csv is not None
        if found.sweep_script and (task := openevolve.task_behind(root, found.sweep_script)):
            where = task.directory if task.directory != "." else ""
            program = task.path(task.program)
            echo(
                f"\n{found.sweep_script} and {program} look like an OpenEvolve task, whose "
                "evaluator returns its metrics and writes no CSV.\n"
                f"  {f'treewright init --force --from openevolve {where}'.rstrip()}\n"
                "writes a sweep that calls it, and a configuration for that."
            )
    else:
        task = openevolve.find_task(root, start)
        sweep = start.resolve() / openevolve.SWEEP
        files = {path: openevolve.render(task), sweep: openevolve.sweep_script(task)}
        _write(files, force)
        has_baseline = False
    config.load(path)
    _print_next_steps(path, steps, has_baseline=has_baseline)


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
        ("treewright doctor", "what is ready, what is missing"),
        ("git add --all && git commit -m 'Add a search'", ""),
        ("treewright tree --dry-run", "the search with made-up results"),
        (f"treewright tree {baseline}--until-done", "the search"),
    ):
        echo(f"  {call:<45}  {purpose}".rstrip())
