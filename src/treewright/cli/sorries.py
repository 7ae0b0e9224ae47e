"""`treewright sorries`: list the open goals of a project, as Lean finds them."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.lean_choice import choose_lean, lean_options, open_choice, project_for
from treewright.cli.options import PATH, command, json_option, timeout_option, verbose_option
from treewright.cli.output import echo, print_json
from treewright.kernel.errors import EXIT_FAILURE
from treewright.kernel.text.numbers import count


@command()
@click.argument("project", type=PATH, default=Path())
@lean_options
@timeout_option
@json_option
@verbose_option
def sorries(
    project: Path, requested: str | None, sandbox: bool | None, timeout: float, as_json: bool
) -> None:
    """List every `sorry` of a project or file: position, goal, context, imports, difficulty.

    Exit code 1 if Lean could not read a file; the goals of the other files are listed.
    With --json the output is a bank: `treewright sorries --json | treewright bank -`.
    """
    from treewright.lean.processes import LeanProcesses
    from treewright.lean.sorries import extract_files, lean_files
    from treewright.orchestrator.goals.sorry_goals import sorry_records

    files = lean_files(project)
    choice = choose_lean(requested, sandbox, project)
    host = open_choice(choice)
    found, problems = [], []
    lake = project_for(host, project) if files else None
    with LeanProcesses(host, lake) as lean:
        for result in extract_files(lean.new_session, files, timeout=timeout):
            errors = [each for each in result.diagnostics if each.severity == "error"]
            if result.error:
                problems.append({"file": str(result.path), "error": result.error})
            if result.error and not any(each.text in result.error for each in errors):
                echo(f"{result.path}: {result.error}", err=True)
            for error in errors:
                echo(error.format(str(result.path)), err=True)
            found += sorry_records(result, project)
    if as_json:
        base = project if project.is_dir() else project.parent
        print_json(
            {
                "backend": choice.backend,
                "project": str(base.resolve()),
                "sorries": found,
                "problems": problems,
            }
        )
    else:
        for record in found:
            context = "".join(f"    {line}\n" for line in record.context)
            echo(
                f"{record.file}:{record.line}:{record.column}: {record.declaration or '(no name)'} "
                f"[difficulty {record.difficulty:.2f}]\n{context}    ⊢ {record.goal}"
            )
        summary = f"{count(len(found), 'sorry', 'sorries')} in {count(len(files), 'file')}"
        echo(summary, err=True)
    if problems:
        raise click.exceptions.Exit(EXIT_FAILURE)
