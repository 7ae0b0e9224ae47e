"""`treewright steer`: change a run while it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from treewright.cli.output import echo
from treewright.kernel.errors import UsageError

_ACTIONS = ("pause", "resume", "stop", "inject", "ban", "boost", "reopen", "budget", "show")
_positive = click.IntRange(min=1)


@click.command()
@click.argument("run")
@click.argument("action", type=click.Choice(_ACTIONS))
@click.argument("what", required=False)
@click.option("--at", metavar="NODE", help="inject: where the idea is tried. [the best node]")
@click.option("--first", is_flag=True, help="inject: before all other ideas.")
@click.option("--now", is_flag=True, help="stop: end what is under way, to be tried again.")
@click.option("--times", type=_positive, help="boost: for so many ideas. [1]")
@click.option("--max-total-idea-evals", type=_positive, help="budget: evaluations of the run.")
@click.option("--max-depth", type=_positive, help="budget: rounds of promotion.")
@click.option("--max-cost-usd", multiple=True, metavar="[ROLE=]USD", help="budget: cost of models.")
@click.option("--max-tokens", multiple=True, metavar="[ROLE=]N", help="budget: tokens of models.")
@click.option("--ideas-per-node", type=_positive, help="budget: ideas per node and round.")
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Target repository (default: the current one).",
)
def steer(run: str, action: str, what: str | None, repo: Path, **flags: Any) -> None:
    """Change RUN while it is there: it is done at the next safe point, and recorded.

    \b
    pause, resume          hand out no further work; go on
    stop [--now]           end after what is under way
    inject IDEA.md         try an idea of yours
    ban NODE|PATTERN       no further idea on a node, or none that matches
    boost NODE             try the next idea there
    reopen NODE            ask for ideas there again
    reopen EVALUATION      try a quarantined candidate again
    budget --max-…         another limit
    show                   what was asked for and what became of it
    """
    from treewright.tree.records import store
    from treewright.tree.run import commands, inbox

    run_dir = _find(repo, run)
    if action == "show":
        _print(commands.asked(run_dir, store.load(run_dir)))
        return
    if action == "inject" and what is not None:
        what = _read_idea(Path(what))
    letter = commands.letter(action, what, flags, spelled=_flag)
    inbox.submit(run_dir, letter)
    echo(f"{action}: applied when the owner of {run} next looks, or when the run goes on", err=True)
    _print({"command_id": letter.command.command_id})


def _find(repo: Path, run: str) -> Path:
    from treewright.tree.records import store
    from treewright.tree.run.open import locate

    _, run_dir = locate(repo, run)
    if not store.exists(run_dir):
        raise UsageError(f"no tree run at {run_dir}; check RUN and --repo")
    return run_dir


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _read_idea(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the idea {path}: {error}") from None


def _print(document: object) -> None:
    import msgspec

    echo(msgspec.json.encode(document).decode())
