"""`treewright doctor`: what is installed, what is not, and what that would enable."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE
from treewright.kernel.rendering.terminal import visible

if TYPE_CHECKING:
    from treewright.kernel.checkup import Check

# Modules that offer `checks(repo)`.
PROVIDERS = (
    "treewright.kernel.checkup",
    "treewright.tree.checkup",
    "treewright.lean.checkup",
    "treewright.orchestrator.checkup",
)

_MARKS = {"ok": ("ok", "green"), "absent": ("--", "cyan")}
_MARKS |= {"warning": ("!!", "yellow"), "failed": ("XX", "red")}


@click.command()
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Target repository (default: the current one).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def doctor(repo: Path, as_json: bool) -> None:
    """Say what is installed, what is not, and what that would enable.

    Exits with 1 if something required is missing, else with 0.
    """
    found = list(_all_checks(repo))
    ok = not any(check.status == "failed" for check in found)
    if as_json:
        import msgspec

        echo(msgspec.json.encode({"ok": ok, "checks": found}).decode())
    else:
        _print(found, ok)
    sys.exit(0 if ok else EXIT_FAILURE)


def _all_checks(repo: Path) -> list[Check]:
    from treewright.kernel.checkup import Check
    from treewright.kernel.errors import TreewrightError, UsageError
    from treewright.tree.repository.git import find_repository

    try:
        root = find_repository(repo)
    except UsageError:
        if repo != Path("."):
            raise
        root = None
    found: list[Check] = []
    for name in PROVIDERS:
        try:
            found.extend(importlib.import_module(name).checks(root))
        except TreewrightError as error:  # the others still have something to say
            part = name.split(".")[1]
            found.append(Check(part, part, "failed", str(error)))
    return found


def _print(found: list[Check], ok: bool) -> None:
    groups = list(dict.fromkeys(check.group for check in found))
    width = max(len(check.name) for check in found)
    for group in groups:
        click.secho(group, bold=True)
        for check in found:
            if check.group != group:
                continue
            mark, colour = _MARKS[check.status]
            shown = visible(f"{check.name:<{width}}  {check.detail}")
            click.echo(f"  {click.style(mark, fg=colour)} {shown}")
            if check.hint:
                echo(f"     {'':<{width}}  {check.hint}")
    echo()
    echo("Everything required is there." if ok else "Something required is missing: see XX.")
