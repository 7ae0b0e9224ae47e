"""`treewright ci`: which `sorry`s a change brings and takes away, and proofs for the new ones."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.hosts import host_options, opened_host
from treewright.cli.numbers import SECONDS, Number
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE, EXIT_INTERRUPTED

if TYPE_CHECKING:
    from treewright.ci.changes import Change
    from treewright.ci.findings import Findings
    from treewright.proving.settings import Settings

_seconds = SECONDS


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), default=Path())
@click.option("--base", required=True, metavar="COMMIT", help="What to compare with.")
@click.option(
    "--fail-on",
    type=click.Choice(["never", "new-sorry", "unproved"]),
    default="never",
    show_default=True,
    help="Exit with 1 if there is a new sorry, or one without a proof.",
)
@click.option(
    "--budget",
    type=Number(min=0.0),
    default=600.0,
    show_default=True,
    help="Most seconds of search for all new sorries; 0 only lists them.",
)
@click.option("--simulations", type=click.IntRange(min=1), help="Most per goal. [200]")
@click.option("--time-limit", type=_seconds, help="Most seconds per goal. [a share of the budget]")
@click.option(
    "--tactics", type=click.Path(path_type=Path, dir_okay=False), help="To try first, one a line."
)
@host_options
@click.option(
    "--timeout", type=_seconds, default=120.0, show_default=True, help="Seconds per file."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def ci(directory: Path, base: str, fail_on: Any, as_json: bool, **given: Any) -> None:
    """Compare the Lean files below DIRECTORY with those of a base commit.

    Lists new and removed sorries, tries the new ones, and leaves a patch and a summary in
    .treewright/ci; nothing else is changed. Exit codes: 0 as wanted, 1 see --fail-on, 2 wrong call.
    """
    import msgspec

    from treewright.ci.changes import changed_since
    from treewright.ci.findings import fails
    from treewright.ci.runner_files import write_findings
    from treewright.cli.prove_settings import settings_of

    wanted = ("simulations", "time_limit", "tactics")
    settings = settings_of({name: given[name] for name in wanted if given[name] is not None})
    change = changed_since(directory, base)
    findings, patch, stopped = _found(change, settings, given)
    findings = write_findings(findings, patch, Path.cwd(), os.environ)
    if as_json:
        echo(msgspec.json.encode(findings).decode())
    else:
        _tell(findings)
    if stopped:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
    if fails(findings, fail_on):
        raise click.exceptions.Exit(EXIT_FAILURE)


def _found(change: Change, settings: Settings, given: dict[str, Any]) -> tuple[Findings, str, bool]:
    """What Lean finds, the patch, and whether the search was stopped.

    Without a change of a Lean file, no Lean is started.
    """
    from treewright.ci.findings import Findings
    from treewright.ci.proving import Trier
    from treewright.ci.reading import Reader
    from treewright.cli.projects import project_of
    from treewright.cli.prove_progress import narrator
    from treewright.cli.prove_sources import opened_source
    from treewright.cli.signals import cancel_on_signals
    from treewright.lean.crew import Crew

    if not change.files:
        return Findings(change.base, ()), "", False
    host = opened_host(given["requested"], given["sandbox"], change.directory)
    project_at = functools.cache(lambda at: project_of(host, at))
    findings = Reader(host, project_at, given["timeout"]).read(change)
    if not findings.new or not given["budget"]:
        return findings, "", False
    axioms, project = frozenset(settings.axioms), project_at(change.directory)
    with Crew(host, axioms=axioms, project=project) as crew, cancel_on_signals() as cancel:
        trier = Trier(
            crew, settings, given["budget"], Path.cwd(), opened_source, narrator(sys.stderr),
            cancel.is_set,
        )  # fmt: skip
        findings, patch = trier.prove(findings, change.repository)
        return findings, patch, cancel.is_set()


def _tell(findings: Findings) -> None:
    from treewright.ci.summary import headline

    for attempt in findings.new:
        place = f"{attempt.sorry.file}:{attempt.sorry.line}:{attempt.sorry.column}"
        why = f": {attempt.detail}" if attempt.detail else ""
        echo(f"new: {place}: {attempt.sorry.declaration or '(no name)'}: {attempt.status}{why}")
    for goal in findings.removed:
        echo(f"removed: {goal.file}:{goal.line}:{goal.column}: {goal.declaration or '(no name)'}")
    for problem in findings.problems:
        echo(f"{problem.file}: {problem.error}", err=True)
    for note in findings.notes:
        echo(f"{note.file} at the base: {note.error}", err=True)
    echo(headline(findings))
    if findings.patch:
        echo(f"patch: {findings.patch}")
