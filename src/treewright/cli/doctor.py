"""`treewright doctor`: what is installed, what is not, and what that would enable."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE, UsageError
from treewright.kernel.text.terminal import visible

if TYPE_CHECKING:
    from treewright.kernel.health_checks import Check
    from treewright.tree.cheats import Trial

# Modules that offer `checks(directory)`: of the repository, or None outside of one.
PROVIDERS = (
    "treewright.kernel.health_checks",
    "treewright.tree.checkup",
    "treewright.lean.checkup",
    "treewright.orchestrator.checkup",
)

# These get the directory that was named: a Lake project may lie below the repository's root.
_OF_THE_DIRECTORY = ("treewright.lean.checkup", "treewright.orchestrator.checkup")

_MARKS = {"ok": ("ok", "green"), "absent": ("--", "cyan")}
_OUTCOMES = {
    "through": ("XX", "red", "Get through"),
    "unknown": ("??", "yellow", "Could not be judged: try again"),
    "not_fitted": ("--", "cyan", "Could not be fitted to this sweep"),
    "stopped": ("ok", "green", "Stopped"),
}
_MARKS |= {"warning": ("!!", "yellow"), "failed": ("XX", "red")}


@click.command()
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Target repository (default: the current one).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option(
    "--cheats",
    is_flag=True,
    help="Try on a copy of the repository which cheats its sweep lets through.",
)
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --cheats: the configuration (default: treewright.toml of the repository).",
)
@click.option(
    "--sweep-config-limit",
    type=click.IntRange(min=1),
    help="With --cheats: sweep only config_id below this.",
)
@click.option(
    "--confirm-configs",
    type=click.IntRange(min=0),
    default=0,
    help="With --cheats: held-out configs from the limit on, as in `tree`.",
)
@click.option(
    "--cheat",
    "names",
    multiple=True,
    metavar="NAME",
    help="With --cheats: only this one; can be given more than once.",
)
def doctor(
    repo: Path,
    as_json: bool,
    cheats: bool,
    names: tuple[str, ...],
    config_path: Path | None,
    sweep_config_limit: int | None,
    confirm_configs: int,
) -> None:
    """Say what is installed, what is not, and what that would enable.

    Exits with 1 if something required is missing, else with 0. With --cheats: with 1 if a cheat
    gets through or could not be judged.
    """
    if cheats:
        _cheats(repo, config_path, sweep_config_limit, confirm_configs, names, as_json)
        return
    if config_path or sweep_config_limit or confirm_configs or names:
        raise UsageError(
            "--cheat, --config, --sweep-config-limit and --confirm-configs go with --cheats"
        )
    found = list(_all_checks(repo))
    ok = not any(check.status == "failed" for check in found)
    if as_json:
        import msgspec

        echo(msgspec.json.encode({"ok": ok, "checks": found}).decode())
    else:
        _print(found, ok)
    sys.exit(0 if ok else EXIT_FAILURE)


def _cheats(
    repo: Path,
    config_path: Path | None,
    limit: int | None,
    confirm: int,
    names: tuple[str, ...],
    as_json: bool,
) -> None:
    import msgspec

    from treewright.tree.cheats import try_cheats
    from treewright.tree.repository.git import find_repository

    trial = try_cheats(
        find_repository(repo), config_path, limit, confirm, lambda s: echo(s, err=True), names
    )
    if as_json:
        echo(msgspec.json.encode({"ok": trial.ok, **msgspec.to_builtins(trial)}).decode())
    else:
        _print_trial(trial)
    sys.exit(0 if trial.ok else EXIT_FAILURE)


def _print_trial(trial: Trial) -> None:
    place = f"; the cheats' code was put into {trial.code}" if trial.code else ""
    echo(f"`{trial.sweep}`{place}")
    width = max(len(each.name) for each in trial.verdicts)
    for outcome, (mark, colour, title) in _OUTCOMES.items():
        some = [each for each in trial.verdicts if each.outcome == outcome]
        if some:
            click.secho(f"{title}: {len(some)}", bold=True)
        for each in some:
            shown = visible(f"{each.name:<{width}}  {each.does}: {each.why}")
            click.echo(f"  {click.style(mark, fg=colour)} {shown}")
            if each.advice:
                echo(f"     {'':<{width}}  {each.advice}")
    echo()
    outcomes = {each.outcome for each in trial.verdicts}
    if "through" in outcomes:
        echo("Some cheats get through: see XX.")
    else:
        echo("No cheat got through." if trial.ok else "Some could not be judged: see ??.")


def _all_checks(repo: Path) -> list[Check]:
    from treewright.kernel.errors import TreewrightError
    from treewright.kernel.health_checks import Check
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
            place = repo.resolve() if name in _OF_THE_DIRECTORY else root
            found.extend(importlib.import_module(name).checks(place))
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
