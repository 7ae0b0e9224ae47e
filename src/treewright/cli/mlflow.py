"""`treewright mlflow`: copy a run to an MLflow tracking server, at once or for each notice."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from treewright.cli.options import LOOKUP_REPO, command, json_option, option, verbose_option
from treewright.cli.output import echo
from treewright.kernel.errors import UsageError

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
