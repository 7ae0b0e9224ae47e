"""`treewright prove PROJECT`: every `sorry` of a Lake project, in the order of its imports."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE, EXIT_INTERRUPTED, UsageError

if TYPE_CHECKING:
    from treewright.proving.prover import Observer
    from treewright.proving.settings import Settings


def prove_project(root: Path, settings: Settings, flags: dict[str, Any]) -> None:
    """One run for each file with a `sorry`, and a patch for each that has a proof now."""
    import msgspec

    from treewright.cli.hosts import opened_host
    from treewright.cli.projects import project_of
    from treewright.cli.prove_serve import announce, warm_host
    from treewright.cli.prove_sources import opened_source
    from treewright.cli.signals import cancel_on_signals
    from treewright.proving.project_prover import ProjectObserver, WholeProject

    if "run_id" in flags:
        raise UsageError("--run-id names one run, and a project gets one for each of its files")
    host = opened_host(flags.get("requested"), flags.get("sandbox"), root)
    if flags.get("library", True):
        from treewright.proving.tactics.factory import with_library

        settings = with_library(settings, host, announce)
    told = ProjectObserver(
        _narrator,
        lambda path, result, patch: echo(
            f"{path}: {result.proved} of {result.total} proved; patch: {patch}", err=True
        ),
        lambda path, error: echo(f"{path}: {error}", err=True),
    )
    with contextlib.ExitStack() as stack:
        cancel = stack.enter_context(cancel_on_signals())
        lent = stack.enter_context(warm_host(host, flags))
        project = stack.enter_context(
            WholeProject(
                root,
                lent,
                settings,
                lambda: project_of(lent, root),
                here=Path.cwd(),
                sources=opened_source,
                observer=told,
                in_place=bool(flags.get("in_place")),
            )
        )
        came = project.prove(cancel.is_set)
    if flags.get("as_json"):
        document = {
            "proved": came.proved,
            "total": came.total,
            "files": came.files,
            "problems": came.problems,
        }
        echo(msgspec.json.encode(document).decode())
    else:
        echo(f"{came.proved} of {came.total} proved, in {len(came.files)} files")
        for path, names in came.left_alone.items():
            echo(f"left alone: {path}: {', '.join(names)}")
    if came.stopped:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
    if not came.is_proved:
        raise click.exceptions.Exit(EXIT_FAILURE)


def _narrator(path: Path) -> Observer:
    from treewright.cli.prove_progress import narrator

    return replace(
        narrator(sys.stderr),
        run=lambda record, directory: echo(f"{path}: run {record.run_id}", err=True),
        written=lambda name: echo(f"written into {path}", err=True),
    )
