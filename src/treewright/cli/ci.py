"""`treewright ci`: list the `sorry`s that a change adds and removes, and try to prove new ones."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.lean_choice import lean_options, open_lean, project_for
from treewright.cli.options import (
    FILE,
    PATH,
    POSITIVE,
    SECONDS,
    Number,
    command,
    json_option,
    option,
    timeout_option,
    verbose_option,
)
from treewright.cli.output import echo, print_json
from treewright.kernel.errors import EXIT_FAILURE, EXIT_INTERRUPTED

if TYPE_CHECKING:
    from treewright.ci.changes import Change
    from treewright.ci.findings import Findings
    from treewright.proving.settings import Settings


@command()
@click.argument("directory", type=PATH, default=Path())
@option("--base", required=True, metavar="COMMIT", help="Commit to compare with. Required.")
@option(
    "--fail-on",
    type=click.Choice(["never", "new-sorry", "unproved"]),
    default="never",
    help="Exit with 1 for any new sorry (new-sorry), or for one without a proof (unproved).",
)
@option(
    "--budget",
    type=Number(min=0.0),
    metavar="SECONDS",
    default=600.0,
    help="Most seconds of search for all new sorries together. 0 only lists them.",
)
@option("--simulations", type=POSITIVE, default_text="200", help="Most simulations for each goal.")
@option(
    "--time-limit",
    type=SECONDS,
    default_text="a share of the budget",
    help="Most seconds of search for each goal.",
)
@option("--tactics", type=FILE, help="File with tactics to try first, one per line.")
@timeout_option
@lean_options
@json_option
@verbose_option
def ci(directory: Path, base: str, fail_on: Any, as_json: bool, **given: Any) -> None:
    """Compare the Lean files below DIRECTORY with those of a base commit.

    Lists new and removed sorries, tries to prove the new ones, and writes a patch and a summary
    into .treewright/ci. No other file changes. Exit codes: 0 passed, 1 see --fail-on, 2 wrong call.
    """
    from treewright.ci.changes import changed_since
    from treewright.ci.findings import fails
    from treewright.ci.runner_files import write_findings
    from treewright.cli.prove_settings import parse_settings

    search = ("simulations", "time_limit", "tactics")
    settings = parse_settings({name: given[name] for name in search if given[name] is not None})
    change = changed_since(directory, base)
    findings, patch, stopped = _find_sorries(change, settings, given)
    findings = write_findings(findings, patch, Path.cwd(), os.environ)
    if as_json:
        print_json(findings)
    else:
        _print_findings(findings)
    if stopped:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
    if fails(findings, fail_on):
        raise click.exceptions.Exit(EXIT_FAILURE)


def _find_sorries(
    change: Change, settings: Settings, given: dict[str, Any]
) -> tuple[Findings, str, bool]:
    """Return the findings, the patch of the new proofs, and whether the search was stopped.

    Lean is started only if the change concerns a Lean file.
    """
    from treewright.ci.changes import SorryReader
    from treewright.ci.findings import Findings
    from treewright.ci.sorry_prover import SorryProver
    from treewright.cli.prove_progress import narrator
    from treewright.cli.prove_settings import opened_source
    from treewright.cli.signals import cancel_on_signals
    from treewright.lean.processes import LeanProcesses

    if not change.files:
        return Findings(change.base, ()), "", False
    host = open_lean(given["requested"], given["sandbox"], change.directory)
    project_at = functools.cache(lambda at: project_for(host, at))
    findings = SorryReader(host, project_at, given["timeout"]).read(change)
    if not findings.new or not given["budget"]:
        return findings, "", False
    axioms, project = frozenset(settings.axioms), project_at(change.directory)
    with LeanProcesses(host, project, axioms=axioms) as lean, cancel_on_signals() as cancel:
        lean.start()
        prover = SorryProver(
            lean, settings, given["budget"], Path.cwd(), opened_source, narrator(sys.stderr),
            cancel.is_set,
        )  # fmt: skip
        findings, patch = prover.prove(findings, change.repository)
        return findings, patch, cancel.is_set()


def _print_findings(findings: Findings) -> None:
    from treewright.ci.summary import headline

    for attempt in findings.new:
        position = f"{attempt.sorry.file}:{attempt.sorry.line}:{attempt.sorry.column}"
        why = f": {attempt.detail}" if attempt.detail else ""
        echo(f"new: {position}: {attempt.sorry.declaration or '(no name)'}: {attempt.status}{why}")
    for goal in findings.removed:
        echo(f"removed: {goal.file}:{goal.line}:{goal.column}: {goal.declaration or '(no name)'}")
    for problem in findings.problems:
        echo(f"{problem.file}: {problem.error}", err=True)
    for note in findings.notes:
        echo(f"{note.file} at the base: {note.error}", err=True)
    echo(headline(findings))
    if findings.patch:
        echo(f"patch: {findings.patch}")
