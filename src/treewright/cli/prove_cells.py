"""The flags of `prove` that are for cell-view only: a group of their own in `--help`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from treewright.cli.numbers import Number

if TYPE_CHECKING:
    from treewright.proving.cell_settings import CellSettings

F = TypeVar("F", bound=Callable[..., Any])

TITLE = "Cell-view, with --mcts-mode distributed"

_positive = click.IntRange(min=1)
_share = Number(0.0, 1.0)
_file = click.Path(path_type=Path, dir_okay=False)

CELL_FLAGS = (
    "agents", "inflight", "algotypes", "view", "radius", "stride", "stay", "refresh",
    "depth_limit", "give_up", "block_fraction", "block_target",
    "block_at", "block_duration", "block_permanent", "unfreeze_prob", "delay_prob",
    "delay_duration", "reroute_max", "interventions",
)  # fmt: skip

_OPTIONS = (
    click.option("--agents", type=_positive, help="Cells. [4]"),
    click.option("--inflight", type=_positive, help="Reservations at once. [2]"),
    click.option("--algotypes", help="Mix of policies, as ucb:2,depth_first:1. [puct]"),
    click.option("--view", type=click.Choice(["subtree", "radius"]), help="What is seen."),
    click.option("--radius", type=_positive, help="How far, with --view radius. [3]"),
    click.option("--stride", type=click.IntRange(min=0), help="Steps to settle. [2]"),
    click.option("--stay", type=_positive, help="Turns at a place. [4]"),
    click.option("--refresh", type=_positive, help="Ticks a belief lasts. [8]"),
    click.option("--depth-limit", type=_positive, help="Of depth_first cells. [12]"),
    click.option("--give-up", type=_positive, help="Fruitless rounds to abort. [8]"),
    click.option("--block-fraction", type=_share, help="Share that is blocked. [0]"),
    click.option("--block-target", type=click.Choice(["agents", "nodes"]), help="Of what."),
    click.option("--block-at", type=click.IntRange(min=0), help="From this tick. [0]"),
    click.option("--block-duration", type=_positive, help="For so many ticks. [20]"),
    click.option("--block-permanent", is_flag=True, default=None, help="For ever."),
    click.option("--unfreeze-prob", type=_share, help="Let go after that time. [1]"),
    click.option("--delay-prob", type=_share, help="Share of late turns. [0]"),
    click.option("--delay-duration", type=_positive, help="Late by so many ticks. [5]"),
    click.option("--reroute-max", type=click.IntRange(min=0), help="Ways round. [2]"),
    click.option("--interventions", type=_file, help="A TOML schedule of them."),
)


def cell_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class CommandWithCells(click.Command):
    """A command whose help has these flags under a heading of their own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        general, cells = [], []
        for parameter in self.get_params(ctx):
            shown = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and shown is not None:
                (cells if parameter.name in CELL_FLAGS else general).append(shown)
        for title, rows in (("Options", general), (TITLE, cells)):
            with formatter.section(title):
                formatter.write_dl(rows)


def cells_of(flags: dict[str, Any]) -> CellSettings:
    """What the flags that were given say; the rest is the default."""
    from treewright.proving.cell_settings import CellSettings, load_schedule, parse_algotypes

    plain = [name for name in CELL_FLAGS if name not in ("algotypes", "interventions")]
    fields = {name: flags[name] for name in plain if name in flags}
    if "algotypes" in flags:
        fields["algotypes"] = parse_algotypes(flags["algotypes"])
        fields.setdefault("agents", len(fields["algotypes"]))
    if "agents" in fields:
        fields.setdefault("inflight", min(CellSettings().inflight, fields["agents"]))
    if "interventions" in flags:
        fields["schedule"] = load_schedule(flags["interventions"])
    return CellSettings(**fields)
