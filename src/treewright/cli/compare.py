"""`treewright compare`: compare several runs."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.options import FILE, LOOKUP_REPO, command, json_option, option
from treewright.cli.output import announce, echo, print_json


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
