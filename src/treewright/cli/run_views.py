"""`treewright compare`, `export`, `mlflow` and `dashboard`: show runs without changing them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from treewright.cli.options import (
    FILE,
    LOOKUP_REPO,
    PATH,
    Count,
    command,
    json_option,
    option,
    verbose_option,
)
from treewright.cli.output import announce, echo, print_json
from treewright.kernel.errors import UsageError


@command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN...")
@json_option
@option("--html", "page", type=FILE, help="Also write the charts and tables to this file.")
@option("--svg", "picture", type=FILE, help="Also write the chart by evaluations to this file.")
@LOOKUP_REPO
def compare(
    runs: tuple[str, ...], as_json: bool, page: Path | None, picture: Path | None, repo: Path
) -> None:
    """Compare runs of one kind: directories or ids of tree runs, proof runs or searches.

    Prints the results of each run by evaluations, time and cost, the ideas or goals that runs
    share, and the difference between the best of each run and the best of the first. Changes
    nothing; a run may be in progress.
    """
    from treewright.runs.columns import save_page
    from treewright.runs.compared_runs import compare_runs
    from treewright.runs.comparison_views import as_html, as_text, charts
    from treewright.runs.run_loader import find, load_run

    found = compare_runs([load_run(find(Path(run), repo)) for run in runs])
    if page is not None:
        save_page(page, "Comparison", as_html(found))
    drawn = charts(found) if picture is not None else {}
    if picture is not None and "evaluations" in drawn:
        drawn["evaluations"].save(picture)
    elif picture is not None:
        announce("there is no evaluation to draw yet; no picture was written")
    if as_json:
        print_json(found)
    else:
        echo(as_text(found))


@command()
@click.argument("run")
@click.argument("file", type=FILE)
@LOOKUP_REPO
def export(run: str, file: Path, repo: Path) -> None:
    """Write RUN as one HTML file that opens without a server.

    RUN is the directory of a tree run, a proof run or an experiment, or its id.
    """
    from treewright.dashboard import export as exporting

    if not file.absolute().parent.is_dir():
        raise UsageError(f"no directory {file.absolute().parent}; make it first")
    total, kept = exporting.write(exporting.find(run, repo), file)
    echo(str(file))
    if kept < total:
        echo(f"the file has details of {kept:,} of {total:,} entries, the best first", err=True)


_MAX_NOTICE_BYTES = 1 << 20


@command()
@click.argument("run")
@option(
    "--tracking-uri",
    metavar="URI",
    default_text="MLFLOW_TRACKING_URI",
    help="Address of the MLflow server.",
)
@option(
    "--experiment",
    metavar="NAME",
    default="treewright",
    help="MLflow experiment that the run is written to.",
)
@LOOKUP_REPO
@json_option
@verbose_option
def mlflow(run: str, tracking_uri: str | None, experiment: str, repo: Path, as_json: bool) -> None:
    """Bring MLflow up to date with RUN: a directory, an id, or - for a notice on stdin.

    Writes one MLflow run for the search, a child run for each evaluation, goal or node, and the
    metrics by step. A second call writes only new records. The run itself is not changed.
    """
    import json
    from dataclasses import asdict

    from treewright.runs.run_loader import find, load_run
    from treewright.trackers.mlflow import write
    from treewright.trackers.tracked_run import track_run

    directory = _read_notice() if run == "-" else find(Path(run), repo)
    found = track_run(load_run(directory))
    written = write(found, tracking_uri=tracking_uri, experiment=experiment)
    if as_json:
        echo(json.dumps(asdict(written)))
    else:
        new = f"{written.children} children and {written.points} points written"
        echo(f"MLflow run {written.run_id} of {found.name}: {new}")


def _read_notice() -> Path:
    """Return the run directory of the notice on stdin; docs/notices.md describes notices."""
    import msgspec

    from treewright.kernel.text import jsontext

    try:
        notice = jsontext.decode(sys.stdin.buffer.read(_MAX_NOTICE_BYTES))
        return Path(notice["run_dir"])
    except (msgspec.DecodeError, KeyError, TypeError):
        raise UsageError(
            "stdin has no notice with a run_dir; name the run: treewright mlflow RUN"
        ) from None


@command()
@option(
    "--runs",
    "runs",
    type=PATH,
    multiple=True,
    metavar="PATH",
    default_text="the current directory",
    help="Project, its .treewright directory, or one run. Repeatable.",
)
@option(
    "--port",
    type=Count(0, 65535),
    default=8321,
    help="Port to listen on. 0 takes a free port.",
)
@option(
    "--host",
    default="127.0.0.1",
    metavar="NAME",
    help="Address to listen on. Any address but a loopback address needs a token.",
)
@option(
    "--token",
    metavar="TEXT",
    default_text="none on loopback, else a new one",
    help="Token that browsers must send.",
)
@verbose_option
def dashboard(runs: tuple[Path, ...], port: int, host: str, token: str | None) -> None:
    """Serve a read-only view of runs and of the ledger, until it is interrupted.

    Prints the address to open on stdout. You can stop and restart it at any time: the dashboard
    never writes into a run and never takes its lock.
    """
    from treewright.dashboard.server import Address, serve

    def announce(url: str) -> None:
        echo(url)
        echo("Ctrl-C ends the dashboard; runs continue.", err=True)

    serve(runs or (Path("."),), Address(host, port, token), announce)
