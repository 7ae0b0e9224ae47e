"""Options that the orchestrator's commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from treewright.cli.numbers import Number
from treewright.kernel.errors import UsageError
from treewright.orchestrator.ledger.file import DEFAULT_PATH

if TYPE_CHECKING:
    from treewright.orchestrator.config import OrchestratorConfig

F = TypeVar("F", bound=Callable[..., Any])

ledger_option = click.option(
    "--ledger",
    "ledger_path",
    default=DEFAULT_PATH,
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The ledger of attempts.",
)


class _StrategyOption(click.Option):
    """Names the strategies that there are, those of plug-ins too, when somebody asks for help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from treewright.orchestrator import strategies

        self.help = f"Only this one; repeatable. {', '.join(strategies.known())}."
        return super().get_help_record(ctx)


_WHERE = (
    click.option(
        "--parallel-backend",
        metavar="NAME",
        help="Where attempts run: threadpool (default), dask, inline, or a plug-in's executor.",
    ),
    click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Scheduler of a running dask cluster; implies --parallel-backend dask.",
    ),
)

_WEIGHT = Number(min=0, max=1, min_open=True)
_OPTIONS = (
    click.option("--max-heavy", type=int, help="Hard goals at once (2)."),
    click.option("--max-light", type=int, help="Easy goals at once (8)."),
    click.option(
        "--cpu-target", type=Number(min=0), help="Load per core above which to wait (0.5)."
    ),
    click.option("--cpu-alpha", type=_WEIGHT, help="Weight of a new reading of the load (0.1)."),
    click.option("--profile", type=int, help="0 stubs, 1 shared machine, 2 all of it (1)."),
    click.option("--speculation", type=int, help="Strategies side by side on one goal (3)."),
    click.option("--lean-sessions", type=int, help="Lean processes that try tactics (2)."),
    click.option(
        "--exploration", type=Number(min=0), help="The bandit's exploration constant (1.5)."
    ),
    click.option("--strategy", "strategies", multiple=True, metavar="NAME", cls=_StrategyOption),
    click.option(
        "--strategy-timeout",
        "timeouts",
        multiple=True,
        metavar="NAME=SECONDS",
        help="A strategy's time for one goal; repeatable.",
    ),
    click.option(
        "--lessons",
        is_flag=True,
        help="Searches try first what the ledger's searches taught; not shown to pay so far.",
    ),
)


def portfolio_options(command: F) -> F:
    """The scheduler's settings; what is not given comes from the profile."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def where_options(command: F) -> F:
    """Where attempts run; belongs to the invocation, not to the run."""
    for option in reversed(_WHERE):
        command = option(command)
    return command


def make_config(
    *,
    reuse: bool,
    profile: int | None,
    strategies: tuple[str, ...],
    timeouts: tuple[str, ...],
    **settings: int | float | None,
) -> OrchestratorConfig:
    """The settings of the profile with what was given on the command line."""
    import msgspec

    from treewright.orchestrator.config import from_profile, parse_timeouts
    from treewright.orchestrator.strategies import check

    for name in ("max_heavy", "max_light", "speculation", "lean_sessions"):
        value = settings.get(name)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1")
    check(strategies)
    given = {name: value for name, value in settings.items() if value is not None}
    return msgspec.structs.replace(
        from_profile(profile),
        reuse=reuse,
        strategies=strategies,
        timeouts=parse_timeouts(timeouts),
        **given,
    )
