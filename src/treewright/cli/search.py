"""`treewright search`: look at a search made with the library, check it, name the policies."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.output import echo


@click.group()
def search() -> None:
    """Searches made with `treewright.open_search`."""


@search.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(path: Path, as_json: bool) -> None:
    """What a search has found so far, without owning it."""
    from treewright.search.description import describe

    described = describe(path)
    echo(described.as_json() if as_json else described.as_text())


@search.command()
@click.argument("path", type=click.Path(path_type=Path))
def validate(path: Path) -> None:
    """Make every choice again and compare it with the recorded one; exit 1 if one differs."""
    from treewright.search.validation import validate as check

    problems = check(path)
    for problem in problems:
        echo(problem, err=True)
    if problems:
        raise SystemExit(1)
    echo("every choice is the one that the policy makes")


@search.command()
def policies() -> None:
    """The policies that there are, with their settings and defaults."""
    from treewright.search.description import describe_policies

    echo(describe_policies())
