"""`treewright blueprint`: does a leanblueprint agree with Lean?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.hosts import host_options, opened_host
from treewright.cli.numbers import SECONDS
from treewright.cli.orchestrator_options import ledger_option
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE

if TYPE_CHECKING:
    from treewright.orchestrator.blueprint.sync import Assessment


@click.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="The Lean project.  [default: the Lake project around PATH]",
)
@click.option(
    "--write",
    is_flag=True,
    help="Make \\leanok true to what Lean says; what the ledger has a proof of is left.",
)
@click.option(
    "--timeout", type=SECONDS, default=120.0, show_default=True, help="Seconds per Lean file."
)
@ledger_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@host_options
def blueprint(
    path: Path,
    project: Path | None,
    write: bool,
    timeout: float,
    ledger_path: Path,
    requested: str | None,
    sandbox: bool | None,
    as_json: bool,
) -> None:
    """Compare a leanblueprint's \\lean, \\leanok and \\uses with the project.

    PATH is the project, the blueprint's directory or its content.tex. Exit 1 if they disagree.
    """
    import msgspec

    from treewright.cli.projects import project_of
    from treewright.lean.choice import find_project
    from treewright.lean.session.host_session import HostSession
    from treewright.lean.verify.replayer import Replayer
    from treewright.orchestrator.blueprint import latex, sync
    from treewright.orchestrator.blueprint.lean import inspect, proved_in_ledger

    entry = sync.find_entry(path)
    root = project or find_project(entry.parent) or (path if path.is_dir() else path.parent)
    read = latex.read(entry)
    wanted = sync.declarations(read)
    echo(f"{len(read.statements)} statements, {len(wanted)} declarations; {root}", err=True)
    host = opened_host(requested, sandbox, root)
    lake = project_of(host, root)
    with (
        HostSession(host, project=lake) as session,
        Replayer(host, project=lake) as replayer,
    ):
        states, problems = inspect(session, replayer, root, wanted, timeout=timeout)
    assessment = sync.assess(read, states, proved_in_ledger(ledger_path, wanted), root)
    changed = sync.write(read, assessment) if write else []
    for problem in (*assessment.problems, *problems):
        echo(f"treewright: {problem}", err=True)
    if as_json:
        document = {
            "entries": msgspec.to_builtins(assessment.entries),
            "problems": [*assessment.problems, *problems],
            "edits": len(assessment.edits),
            "written": [str(file) for file in changed],
        }
        echo(json.dumps(document, ensure_ascii=False))
    else:
        for entry_ in assessment.drifted:
            name = entry_.label or ", ".join(entry_.lean) or entry_.environment
            echo(f"{entry_.file}:{entry_.line}: {name}: {'; '.join(entry_.drift)}")
        agreed = len(assessment.entries) - len(assessment.drifted)
        echo(f"{agreed} of {len(assessment.entries)} statements agree", err=True)
        for file in changed:
            echo(f"updated {file}", err=True)
    if assessment.drifted and not (write and _only_marks(assessment)):
        raise click.exceptions.Exit(EXIT_FAILURE)


def _only_marks(assessment: Assessment) -> bool:
    """Whether writing has settled everything there was."""
    settled = ("_not_marked", "_but_open", "_but_absent")
    return all(code.endswith(settled) for entry in assessment.entries for code in entry.drift)
