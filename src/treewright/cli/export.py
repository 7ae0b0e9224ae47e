"""`treewright export`: write a run as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.options import FILE, LOOKUP_REPO, command
from treewright.cli.output import echo


@command()
@click.argument("run")
@click.argument("file", type=FILE)
@LOOKUP_REPO
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
        echo(f"the file has details of {kept:,} of {total:,} entries, the best first", err=True)
