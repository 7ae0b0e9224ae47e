"""`prove PROJECT` and `prove --experiment FILE`: several proof runs in one call."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.lean_choice import open_lean, project_for
from treewright.cli.output import announce, echo, print_json
from treewright.cli.prove_progress import describe_goals, narrator
from treewright.cli.prove_settings import opened_source
from treewright.cli.signals import cancel_on_signals
from treewright.kernel.errors import EXIT_FAILURE, EXIT_INTERRUPTED, UsageError
from treewright.kernel.storage.run_directory import STATE_DIR, hide_from_git, validate_run_id

if TYPE_CHECKING:
    from treewright.cellview.experiment.execution import Progress
    from treewright.proving.phases import Observer
    from treewright.proving.run import RunResult
    from treewright.proving.settings import Settings


def prove_project(root: Path, settings: Settings, flags: dict[str, Any]) -> None:
    """Make one run for each file of a Lake project that has a `sorry`, in the order of imports.

    The proofs of all files are one patch.
    """
    from treewright.proving.project_prover import ProjectObserver, ProjectProver
    from treewright.proving.tactics.factory import add_library_index

    if "run_id" in flags:
        raise UsageError("--run-id names one run, and a project gets one for each of its files")
    host = open_lean(flags.get("requested"), flags.get("sandbox"), root)
    if flags.get("library", True):
        settings = add_library_index(settings, host, announce)
    prints_goals = not flags.get("as_json")
    observer = ProjectObserver(
        _narrate_file,
        lambda path, result: _print_file(path, result, with_goals=prints_goals),
        lambda path, error: echo(f"{path}: {error}", err=True),
    )
    with contextlib.ExitStack() as stack:
        cancel = stack.enter_context(cancel_on_signals())
        project = stack.enter_context(
            ProjectProver(
                root,
                host,
                settings,
                lambda: project_for(host, root),
                here=Path.cwd(),
                sources=opened_source,
                observer=observer,
                in_place=bool(flags.get("in_place")),
            )
        )
        result = project.prove(cancel.is_set)
    if flags.get("as_json"):
        print_json(
            {
                "proved": result.proved,
                "total": result.total,
                "files": result.files,
                "problems": result.problems,
                "patch": None if result.patch is None else str(result.patch),
            }
        )
    else:
        echo(f"{result.proved} of {result.total} proved, in {len(result.files)} files")
        for path, names in result.left_alone.items():
            echo(f"left alone: {path}: {', '.join(names)}")
        if result.patch is not None:
            echo(f"patch with all proofs: {result.patch}")
    if result.stopped:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
    if not result.is_proved:
        raise click.exceptions.Exit(EXIT_FAILURE)


def _print_file(path: Path, result: RunResult, *, with_goals: bool) -> None:
    echo(f"{path}: {result.proved} of {result.total} proved", err=not with_goals)
    if with_goals:
        for line in describe_goals(result.goals):
            echo(line)


def _narrate_file(path: Path, number: int, total: int) -> Observer:
    echo(f"file {number} of {total}: {path}", err=True)
    return replace(
        narrator(sys.stderr),
        run=lambda record, directory: echo(f"{path}: run {record.run_id}", err=True),
        written=lambda name: echo(f"written into {path}", err=True),
    )


def run_experiment(flags: dict[str, Any]) -> None:
    """Run the missing searches of an experiment. The file gives its name, and so its directory."""
    from treewright.cellview.experiment import execution
    from treewright.cellview.experiment.layout import EXPERIMENTS_DIR
    from treewright.cellview.experiment.plan import load
    from treewright.cellview.experiment.plan_prover import PlanProver
    from treewright.lean.processes import LeanProcesses

    plan = load(flags["experiment"])
    name = validate_run_id(flags.get("run_id") or plan.name)
    force = bool(flags.get("force"))
    base = Path.cwd() / STATE_DIR / EXPERIMENTS_DIR
    hide_from_git(base)
    host = open_lean(flags.get("requested"), flags.get("sandbox"))
    with LeanProcesses(host) as lean, cancel_on_signals() as cancel:
        prover = PlanProver(plan, lean, cancel.is_set, force=force)
        state = execution.run_experiment(plan, base / name, prover, _print_search, force=force)
    if flags.get("as_json"):
        print_json(
            {
                "experiment": name,
                "directory": str(state.directory),
                "report": str(state.report),
                "finished": state.finished,
                "total": state.total,
                "solved": state.solved,
                "complete": state.complete,
            }
        )
    else:
        echo(f"{state.finished} of {state.total} runs finished, {state.solved} proved")
        echo(f"report: {state.report}")
    if not state.complete:
        announce("stopped; run the same command again to continue")
        raise click.exceptions.Exit(EXIT_INTERRUPTED)


def _print_search(progress: Progress) -> None:
    if progress.result is not None and not progress.earlier:
        result = progress.result
        echo(
            f"[{progress.done}/{progress.total}] {progress.planned.cell_id}: {result.status} after "
            f"{result.steps} steps",
            err=True,
        )
