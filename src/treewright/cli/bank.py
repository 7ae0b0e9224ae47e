"""`treewright bank`: a bank of goals through the portfolio of strategies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.hosts import host_options, lean_access
from treewright.cli.numbers import SECONDS
from treewright.cli.orchestrator_options import ledger_option, portfolio_options, where_options
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from treewright.orchestrator.types import Goal, Result

_MANY = 1000


@click.command()
@click.argument(
    "bank_file",
    metavar="[BANK]",
    default=Path("bench/bank.jsonl"),
    type=click.Path(path_type=Path, dir_okay=False),
)
@click.option(
    "--timeout", type=SECONDS, default=120.0, show_default=True, help="Seconds for the whole run."
)
@portfolio_options
@where_options
@host_options
@click.option(
    "--results",
    default=Path("bench/results"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where bank-<time>.json and .svg go.",
)
@click.option("--fresh", is_flag=True, help="Start anew where an interrupted run could go on.")
@click.option("--reuse", is_flag=True, help="Count earlier runs' attempts and cached tactics.")
@ledger_option
@click.option("--json", "as_json", is_flag=True, help="The results as JSON on stdout.")
def bank(
    bank_file: Path,
    timeout: float,
    results: Path,
    fresh: bool,
    reuse: bool,
    parallel_backend: str | None,
    cluster: str | None,
    requested: str | None,
    sandbox: bool | None,
    ledger_path: Path,
    as_json: bool,
    **portfolio: Any,
) -> None:
    """Try to prove every goal of a bank (JSON Lines); write the results.

    A run that was interrupted goes on when it is started again. Exits with 0 when every goal
    was processed or the time was over, with 130 after a signal.
    """
    import asyncio

    import msgspec

    from treewright.cli.orchestrator_options import make_config
    from treewright.orchestrator.goals.bank import read_bank
    from treewright.orchestrator.ledger.counting import stub_ledger
    from treewright.orchestrator.ledger.store import Ledger
    from treewright.orchestrator.running import bank_report, bench
    from treewright.orchestrator.running.placing import attempting

    config = make_config(reuse=reuse, **portfolio)
    if config.profile == 0:
        ledger_path = stub_ledger(ledger_path)
    goals = read_bank(bank_file)
    for problem in goals.problems[:10]:
        echo(f"{bank_file}:{problem.line}: left out: {problem.reason}", err=True)
    with (
        attempting(parallel_backend, cluster, config, bank_file) as where,
        Ledger(ledger_path) as ledger,
    ):
        lean = lean_access(requested, sandbox, where, config, bank_file)
        run = asyncio.run(
            bench.run_bank(
                goals,
                config,
                ledger,
                timeout=timeout,
                fresh=fresh,
                on_result=_Progress(len(goals.goals)),
                announce=lambda text: echo(text, err=True),
                attempting=where,
                lean=lean,
            )
        )
        path = bank_report.publish(run.results, ledger, results)
    if as_json:
        echo(msgspec.json.encode(run.results).decode())
    else:
        echo(bank_report.table(run.results))
    echo(f"results: {path}", err=True)
    if run.interrupted:
        echo("interrupted; run the same command again to continue", err=True)
        raise click.exceptions.Exit(EXIT_INTERRUPTED)


class _Progress:
    """A line a goal on stderr; of a large bank, one in a thousand."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0

    def __call__(self, goal: Goal, result: Result) -> None:
        self._done += 1
        if self._total > _MANY and self._done % _MANY:
            return
        what = f"proved by {result.strategy}" if result.success else "not proved"
        echo(f"[{self._done}/{self._total}] {goal.id}: {what}", err=True)
