"""`treewright doctor`: check the installation and the repository."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.options import (
    FILE,
    NOT_NEGATIVE,
    POSITIVE,
    TARGET_REPO,
    command,
    json_option,
    option,
    verbose_option,
)
from treewright.cli.output import echo, print_json
from treewright.kernel.errors import EXIT_FAILURE, UsageError
from treewright.kernel.text.printable import visible

if TYPE_CHECKING:
    from treewright.kernel.health_checks import Check
    from treewright.tree.cheats import Trial

# Modules with a function `checks(directory)`; its argument is the repository, or None outside one.
PROVIDERS = (
    "treewright.kernel.health_checks",
    "treewright.tree.checkup",
    "treewright.lean.checkup",
    "treewright.orchestrator.checkup",
)

# These get the directory itself, because a Lake project may be below the repository's root.
_DIRECTORY_PROVIDERS = ("treewright.lean.checkup", "treewright.orchestrator.checkup")

_LEAN_GROUPS = ("lean", "strategies")
_LEAN_EXTRAS = ("lean", "premises")
_CODE_GROUPS = ("agents", "repository")
"""Groups of checks that only Lean projects, or only searches over commits, need."""
_CHEATS = "The cheat corpus"
_MARKS = {"ok": ("ok", "green"), "absent": ("--", "cyan")}
_OUTCOMES = {
    "through": ("XX", "red", "Get through"),
    "unknown": ("??", "yellow", "Not judged because of a fault: try again"),
    "not_fitted": ("--", "cyan", "Not applicable to this sweep"),
    "stopped": ("ok", "green", "Stopped"),
}
_MARKS |= {"warning": ("!!", "yellow"), "failed": ("XX", "red")}


@command()
@TARGET_REPO
@option(
    "--cheats",
    is_flag=True,
    heading=_CHEATS,
    help="Report which cheats the repository's sweep accepts, tried on a copy of the repository.",
)
@option(
    "--config",
    "config_path",
    type=FILE,
    heading=_CHEATS,
    default_text="treewright.toml of the repository",
    help="Configuration.",
)
@option(
    "--sweep-config-limit",
    type=POSITIVE,
    heading=_CHEATS,
    default_text="all configs",
    help="Sweep only configs with config_id < N.",
)
@option(
    "--confirm-configs",
    type=NOT_NEGATIVE,
    default=0,
    heading=_CHEATS,
    help="Held-out configs, from --sweep-config-limit on.",
)
@option(
    "--cheat",
    "names",
    multiple=True,
    metavar="NAME",
    heading=_CHEATS,
    default_text="all",
    help="Try only this cheat. Repeatable.",
)
@option(
    "--all",
    "show_all",
    is_flag=True,
    help="Also report what this project does not use: Lean, or the search over commits.",
)
@json_option
@verbose_option
def doctor(
    repo: Path,
    as_json: bool,
    show_all: bool,
    cheats: bool,
    names: tuple[str, ...],
    config_path: Path | None,
    sweep_config_limit: int | None,
    confirm_configs: int,
) -> None:
    """Report installed and missing parts, and the use of each missing part.

    In a project without Lean, Lean is not mentioned; in a Lean project without a treewright.toml,
    the search over commits is not. --all reports both.

    Exit codes: 0 all required parts work, 1 a required part is missing. With --cheats: 1 if a
    cheat gets through or could not be judged.
    """
    if cheats:
        _try_cheats(repo, config_path, sweep_config_limit, confirm_configs, names, as_json)
        return
    if config_path or sweep_config_limit or confirm_configs or names:
        raise UsageError(
            "--cheat, --config, --sweep-config-limit and --confirm-configs go with --cheats"
        )
    is_lean, is_code = (True, True) if show_all else _uses(repo)
    found = [check for check in _all_checks(repo, is_lean) if _concerns(check, is_lean, is_code)]
    ok = not any(check.status == "failed" for check in found)
    if as_json:
        print_json({"ok": ok, "checks": found})
    else:
        _print(found, ok)
        if not (is_lean and is_code):
            left_out = "the search over commits" if is_lean else "Lean"
            echo(f"Nothing here uses {left_out}: `treewright doctor --all` checks that too.")
    sys.exit(0 if ok else EXIT_FAILURE)


def _uses(repo: Path) -> tuple[bool, bool]:
    """Return whether a directory has to do with Lean, and with the search over commits.

    Outside of a repository and of a Lake project, everything may be of interest.
    """
    from treewright.lean.hosts.native.toolchain import find_project
    from treewright.tree.config import DEFAULT_NAME
    from treewright.tree.repository.git import find_repository

    directory = repo.resolve()
    try:
        root = find_repository(repo)
    except UsageError:
        root = None
    is_lean = find_project(directory) is not None or any(directory.glob("*.lean"))
    is_code = root is not None and (root / DEFAULT_NAME).exists()
    if root is None and not is_lean:
        return True, True
    return is_lean, is_code or not is_lean


def _concerns(check: Check, is_lean: bool, is_code: bool) -> bool:
    if check.group in _LEAN_GROUPS or (check.group == "extras" and check.name in _LEAN_EXTRAS):
        return is_lean
    return is_code or check.group not in _CODE_GROUPS


def _try_cheats(
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
        print_json({"ok": trial.ok, **msgspec.to_builtins(trial)})
    else:
        _print_trial(trial)
    sys.exit(0 if trial.ok else EXIT_FAILURE)


def _print_trial(trial: Trial) -> None:
    code = f"; the cheats' code is in {trial.code}" if trial.code else ""
    echo(f"`{trial.sweep}`{code}")
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


def _all_checks(repo: Path, is_lean: bool) -> list[Check]:
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
        if name in _DIRECTORY_PROVIDERS and not is_lean:
            continue
        try:
            directory = repo.resolve() if name in _DIRECTORY_PROVIDERS else root
            found.extend(importlib.import_module(name).checks(directory))
        except TreewrightError as error:  # the other providers are still asked
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
