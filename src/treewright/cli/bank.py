"""`treewright bank`: prove a bank of goals with a portfolio of strategies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.lean_choice import lean_options
from treewright.cli.options import (
    DIRECTORY,
    SECONDS,
    command,
    is_verbose,
    json_option,
    ledger_option,
    option,
    verbose_option,
)
from treewright.cli.output import echo, print_json
from treewright.cli.portfolio import (
    make_config,
    open_lean_access,
    place_options,
    portfolio_options,
)
from treewright.kernel.errors import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from treewright.orchestrator.types import Goal, Result

_GOALS_PER_LINE = 1000
"""Of a bank with more goals than this, one goal in this many is printed."""


@command()
@click.argument(
    "bank_file",
    metavar="[BANK]",
    default=Path("bench/bank.jsonl"),
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
)
@option("--timeout", type=SECONDS, default=120.0, help="Most seconds for the whole run.")
@portfolio_options
@place_options
@lean_options
@option(
    "--results",
    default=Path("bench/results"),
    type=DIRECTORY,
    help="Directory for bank-<time>.json and its picture.",
)
@option("--fresh", is_flag=True, help="Start a new run, even if an interrupted one could continue.")
@option("--reuse", is_flag=True, help="Use the attempts and cached tactics of earlier runs.")
@ledger_option
@json_option
@verbose_option
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
    """Try to prove every goal of a bank; write the results.

    BANK is a file of JSON Lines, or - for stdin: `treewright sorries --json | treewright bank -`.
    The same command continues an interrupted run. Exit codes: 0 every goal was tried or the time
    is over, 130 interrupted.
    """
    import asyncio

    from treewright.orchestrator import bank_run
    from treewright.orchestrator.goals.bank import parse_bank, read_bank
    from treewright.orchestrator.ledger.attempts import stub_ledger_path
    from treewright.orchestrator.ledger.ledger import Ledger
    from treewright.orchestrator.scheduling.dispatch import open_backend

    config = make_config(reuse=reuse, **portfolio)
    if config.profile == 0:
        ledger_path = stub_ledger_path(ledger_path)
    if str(bank_file) == "-":
        goals = parse_bank(sys.stdin.buffer.read(), Path("-"), Path.cwd())
    else:
        goals = read_bank(bank_file)
    for problem in goals.problems[:10]:
        echo(f"{bank_file}:{problem.line}: left out: {problem.reason}", err=True)
    with (
        open_backend(parallel_backend, cluster, config, goals.root) as backend,
        Ledger(ledger_path) as ledger,
    ):
        lean = open_lean_access(requested, sandbox, backend, config, goals.root)
        run = asyncio.run(
            bank_run.run_bank(
                goals,
                config,
                ledger,
                timeout=timeout,
                fresh=fresh,
                on_result=_Progress(len(goals.goals)),
                announce=lambda text: echo(text, err=True),
                backend=backend,
                lean=lean,
            )
        )
        path = bank_run.publish_results(run.results, ledger, results)
    if as_json:
        print_json(run.results)
    else:
        echo(bank_run.format_table(run.results))
    echo(f"results: {path}", err=True)
    if run.interrupted:
        echo("interrupted; run the same command again to continue", err=True)
        raise click.exceptions.Exit(EXIT_INTERRUPTED)


class _Progress:
    """Prints a line for each goal on stderr; for a large bank, for one goal in a thousand."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._goals_per_line = 1 if is_verbose() or total <= _GOALS_PER_LINE else _GOALS_PER_LINE

    def __call__(self, goal: Goal, result: Result) -> None:
        self._done += 1
        if self._done % self._goals_per_line == 0:
            outcome = f"proved by {result.strategy}" if result.success else "not proved"
            echo(f"[{self._done}/{self._total}] {goal.id}: {outcome}", err=True)
