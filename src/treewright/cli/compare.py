"""`treewright compare`: several runs side by side."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.output import echo

_file = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("--html", "page", type=_file, help="Also write the charts and tables to this file.")
@click.option("--svg", "picture", type=_file, help="Also write the chart by evaluations.")
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Project in which runs are looked up by their ids (default: the current one).",
)
def compare(
    runs: tuple[str, ...], as_json: bool, page: Path | None, picture: Path | None, repo: Path
) -> None:
    """Compare runs of one kind: directories or ids of tree runs, proof runs or searches.

    What each had found by evaluations, time and cost; ideas or goals shared and not; how the best
    of each differs from the best of the first. Reads only, also runs that somebody works on.
    """
    import msgspec

    from treewright.runs.columns import save_page
    from treewright.runs.comparison_picture import as_html, charts
    from treewright.runs.comparison_text import as_text
    from treewright.runs.contenders import compare_runs
    from treewright.runs.loading import find, load_run

    found = compare_runs([load_run(find(Path(run), repo)) for run in runs])
    if page is not None:
        save_page(page, "Comparison", as_html(found))
    drawn = charts(found) if picture is not None else {}
    if picture is not None and "evaluations" in drawn:
        drawn["evaluations"].save(picture)
    elif picture is not None:
        echo("treewright: there is nothing to draw yet", err=True)
    echo(msgspec.json.encode(found).decode() if as_json else as_text(found))
