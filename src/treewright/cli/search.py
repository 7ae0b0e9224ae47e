"""`treewright search`: show and check searches made with the library, and list the policies."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.options import PATH, group, json_option
from treewright.cli.output import echo


@group()
def search() -> None:
    """Show and check searches made with `treewright.open_search`, and list the policies."""


@search.command()
@click.argument("path", type=PATH)
@json_option
def show(path: Path, as_json: bool) -> None:
    """Print the results of a search so far.

    Another process may run the search at the same time.
    """
    from treewright.search.recorded_search import describe

    described = describe(path)
    echo(described.as_json() if as_json else described.as_text())


@search.command()
@click.argument("path", type=PATH)
def validate(path: Path) -> None:
    """Repeat every choice and compare it with the recorded one. Exit code 1 if one differs."""
    from treewright.search.recorded_search import validate as check

    problems = check(path)
    for problem in problems:
        echo(problem, err=True)
    if problems:
        raise SystemExit(1)
    echo("every recorded choice is the choice of the policy")


@search.command()
def policies() -> None:
    """List the policies with their settings and defaults."""
    from treewright.search import policies as over_trees
    from treewright.search.andor import policies as over_goals

    echo("over trees, for treewright.open_search and treewright tree:")
    echo("\n".join(over_trees.POLICIES.listing()))
    echo("\nover goals, for treewright prove:")
    echo("\n".join(over_goals.POLICIES.listing()))
