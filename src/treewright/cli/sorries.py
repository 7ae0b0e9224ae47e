"""`treewright sorries`: every open goal of a project, found by Lean itself."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.hosts import chosen, host_of, host_options
from treewright.cli.numbers import SECONDS
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE
from treewright.kernel.text.numbers import count


@click.command()
@click.argument("project", type=click.Path(path_type=Path), default=Path())
@host_options
@click.option("--timeout", type=SECONDS, default=120.0, show_default=True, help="Seconds per file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def sorries(
    project: Path, requested: str | None, sandbox: bool | None, timeout: float, as_json: bool
) -> None:
    """List every `sorry` of a project or file: position, goal, context, imports, difficulty.

    Exits with 1 if a file could not be read by Lean; the others are listed all the same.
    """
    import msgspec

    from treewright.cli.projects import project_of
    from treewright.lean.session.host_session import HostSession
    from treewright.lean.sorries import extract_files, lean_files
    from treewright.orchestrator.goals.project import records

    files = lean_files(project)
    choice = chosen(requested, sandbox, project)
    host = host_of(choice)
    found, problems = [], []
    lake = project_of(host, project) if files else None
    for result in extract_files(lambda: HostSession(host, project=lake), files, timeout=timeout):
        errors = [each for each in result.diagnostics if each.severity == "error"]
        if result.error:
            problems.append({"file": str(result.path), "error": result.error})
        if result.error and not any(each.text in result.error for each in errors):
            echo(f"{result.path}: {result.error}", err=True)
        for error in errors:
            echo(error.format(str(result.path)), err=True)
        found += records(result, project)
    if as_json:
        document = {"backend": choice.backend, "sorries": found, "problems": problems}
        echo(msgspec.json.encode(document).decode())
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
