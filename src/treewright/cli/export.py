"""`treewright export`: a run as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.output import echo


@click.command()
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Project in which RUN is looked up by its id (default: the current one).",
)
def export(run: str, file: Path, repo: Path) -> None:
    """Write RUN as one HTML file that opens without a server.

    RUN is the directory of a tree run, a proof run or an experiment, or its id.
    """
    from treewright.dashboard import export as exporting
    from treewright.kernel.errors import UsageError

    if not file.absolute().parent.is_dir():
        raise UsageError(f"no directory {file.absolute().parent}; make it first")
    total, kept = exporting.write(exporting.find(run, repo), file)
    echo(str(file))
    if kept < total:
        echo(f"details of {kept:,} of {total:,} are in it, the best first", err=True)
