"""`treewright steer`: change a tree run while it runs or before it continues."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.options import (
    POSITIVE,
    TARGET_REPO,
    command,
    flag_name,
    json_option,
    option,
    read_user_file,
)
from treewright.cli.output import echo, print_json
from treewright.kernel.errors import UsageError

if TYPE_CHECKING:
    from treewright.tree.run.command_files import CommandList

_ACTIONS = ("pause", "resume", "stop", "inject", "ban", "boost", "reopen", "budget", "show")
_ACTION = "Details of an action"
_BUDGET = "New limits, with budget"


@command()
@click.argument("run")
@click.argument("action", type=click.Choice(_ACTIONS))
@click.argument("what", required=False)
@TARGET_REPO
@option(
    "--at",
    metavar="NODE",
    heading=_ACTION,
    default_text="the best node",
    help="inject: node on which the idea is tried.",
)
@option("--first", is_flag=True, heading=_ACTION, help="inject: try the idea before all others.")
@option(
    "--now", is_flag=True, heading=_ACTION, help="stop: end running evaluations, to be retried."
)
@option(
    "--times",
    type=POSITIVE,
    heading=_ACTION,
    default_text="1",
    help="boost: number of ideas tried on the node next.",
)
@option(
    "--max-total-idea-evals",
    type=POSITIVE,
    heading=_BUDGET,
    help="Most evaluations over the whole run.",
)
@option("--max-depth", type=POSITIVE, heading=_BUDGET, help="Most rounds of promotion.")
@option(
    "--ideas-per-node", type=POSITIVE, heading=_BUDGET, help="Ideas tried on each node and round."
)
@option(
    "--max-cost-usd",
    multiple=True,
    metavar="[ROLE=]USD",
    heading=_BUDGET,
    help="Most US dollars that models may cost over the run, or in one role. Repeatable.",
)
@option(
    "--max-tokens",
    multiple=True,
    metavar="[ROLE=]N",
    heading=_BUDGET,
    help="Most tokens of models over the run, or in one role. Repeatable.",
)
@json_option
def steer(run: str, action: str, what: str | None, repo: Path, as_json: bool, **flags: Any) -> None:
    """Change RUN while it runs. The run applies the change at the next safe point and records it.

    \b
    pause, resume          start no further evaluation; continue
    stop [--now]           end the run after the running evaluations
    inject IDEA.md         try an idea of yours
    ban NODE|PATTERN       try no further idea on a node, or none whose text matches
    boost NODE             try the next idea on this node
    reopen NODE            ask for ideas for this node again
    reopen EVALUATION      try a quarantined candidate again
    budget --max-…         change a limit
    show [--json]          list the changes so far and their results
    """
    from treewright.tree.records import store
    from treewright.tree.run import command_files

    run_dir = _find_run(repo, run)
    if action == "show":
        found = command_files.list_commands(run_dir, store.load(run_dir))
        if as_json:
            print_json(found)
        else:
            _print_table(found)
        return
    if action == "inject" and what is not None:
        what = read_user_file(Path(what))
    letter = command_files.parse_command(action, what, flags, spell_option=flag_name)
    command_files.submit(run_dir, letter)
    echo(f"{action}: {run} applies it at its next safe point, or when the run continues", err=True)
    print_json({"command_id": letter.command.command_id})


def _print_table(found: CommandList) -> None:
    from treewright.tree.records.steering import Steering, describe

    waiting = [Steering(command=command) for command in found.waiting]
    states = (("waiting", waiting), ("applied", found.applied), ("refused", found.refused))
    rows = [
        (
            record.command.requested_at,
            state,
            f"after {record.evaluations}" if state == "applied" else "",
            describe(record),
        )
        for state, records in states
        for record in records
    ]
    if not rows:
        echo("Nothing was asked of this run.")
        return
    rows.sort()
    table = [("asked at", "state", "evaluation", "what"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    for row in table:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        echo("  ".join([*cells, row[3]]))


def _find_run(repo: Path, run: str) -> Path:
    from treewright.tree.records import store
    from treewright.tree.run.open import locate

    _, run_dir = locate(repo, run)
    if not store.exists(run_dir):
        raise UsageError(f"no tree run at {run_dir}; check RUN and --repo")
    return run_dir
