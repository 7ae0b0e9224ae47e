"""`treewright mlflow`: a run in an MLflow tracking server, now or whenever a notice comes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from treewright.cli.output import echo
from treewright.kernel.errors import UsageError

_LARGEST_NOTICE = 1 << 20


@click.command()
@click.argument("run")
@click.option(
    "--tracking-uri",
    metavar="URI",
    help="Where MLflow is. [what MLFLOW_TRACKING_URI says]",
)
@click.option("--experiment", default="treewright", show_default=True, help="MLflow's name for it.")
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Project in which RUN is looked up by its id (default: the current one).",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def mlflow(run: str, tracking_uri: str | None, experiment: str, repo: Path, as_json: bool) -> None:
    """Bring MLflow up to date with RUN: a directory, an id, or - for a notice on stdin.

    A run per search, its evaluations (goals, nodes) as children, numbers by step. Again changes
    nothing; a run that goes on is continued. Reads the run's records, takes no lease.
    """
    import json
    from dataclasses import asdict

    from treewright.runs.loading import find, load_run
    from treewright.trackers.mlflow import write
    from treewright.trackers.tracked import tracked

    place = _from_notice() if run == "-" else find(Path(run), repo)
    found = tracked(load_run(place))
    written = write(found, tracking_uri=tracking_uri, experiment=experiment)
    if as_json:
        echo(json.dumps(asdict(written)))
    else:
        new = f"{written.children} children and {written.points} points written"
        echo(f"MLflow run {written.run_id} of {found.name}: {new}")


def _from_notice() -> Path:
    """The run of a notice: see docs/notices.md."""
    import msgspec

    from treewright.kernel.text import jsontext

    try:
        notice = jsontext.decode(sys.stdin.buffer.read(_LARGEST_NOTICE))
        return Path(notice["run_dir"])
    except (msgspec.DecodeError, KeyError, TypeError):
        raise UsageError(
            "there is no notice with a run_dir on stdin; give the run itself: treewright mlflow RUN"
        ) from None
