"""`treewright blueprint`: compare a leanblueprint with Lean and the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.lean_choice import lean_options, open_lean, project_for
from treewright.cli.options import (
    command,
    json_option,
    ledger_option,
    option,
    timeout_option,
    verbose_option,
)
from treewright.cli.output import announce, echo
from treewright.kernel.errors import EXIT_FAILURE

if TYPE_CHECKING:
    from treewright.orchestrator.blueprint.sync import Assessment


@command()
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default_text="the Lake project around PATH",
    help="Directory of the Lean project.",
)
@option(
    "--write",
    is_flag=True,
    help="Correct \\leanok by the state of each declaration in Lean, and mark declarations whose "
    "proof in the ledger replays.",
)
@timeout_option
@ledger_option
@lean_options
@json_option
@verbose_option
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

    PATH is the project, the blueprint's directory or its content.tex. Exit code 1 if they differ.
    """
    import msgspec

    from treewright.lean.choice import find_project
    from treewright.lean.processes import LeanProcesses
    from treewright.orchestrator.blueprint import latex, sync
    from treewright.orchestrator.blueprint.sync import (
        inspect_declarations,
        proved_in_ledger,
        with_ledger_proofs,
    )

    entry = sync.find_entry_file(path)
    root = project or find_project(entry.parent) or (path if path.is_dir() else path.parent)
    read = latex.read(entry)
    wanted = sync.declared_names(read)
    echo(f"{len(read.statements)} statements, {len(wanted)} declarations; {root}", err=True)
    host = open_lean(requested, sandbox, root)
    lake = project_for(host, root)
    with LeanProcesses(host, lake) as lean:
        session, replayer = lean.kept_session(), lean.replayer
        states, problems = inspect_declarations(session, replayer, root, wanted, timeout=timeout)
        states = with_ledger_proofs(states, session, replayer, root, ledger_path, timeout=timeout)
    assessment = sync.assess(read, states, proved_in_ledger(ledger_path, wanted), root)
    changed = sync.write_edits(read, assessment) if write else []
    for problem in (*assessment.problems, *problems):
        announce(problem)
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
    """Return whether --write has corrected all differences."""
    settled = ("_not_marked", "_but_open", "_but_absent")
    return all(
        code.endswith(settled)
        or entry.lean.get(code.removeprefix("proved_in_ledger:")) == "in_ledger"
        for entry in assessment.entries
        for code in entry.drift
    )
