"""`treewright ledger`: show and export the recorded attempts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from treewright.cli.options import FILE, group, json_option, ledger_option, option
from treewright.cli.output import Visible, echo
from treewright.kernel.errors import UsageError


@group()
def ledger() -> None:
    """Show and export the attempts in a ledger. The ledger is not changed."""


def _open(path: Path):
    """Open the ledger to show, or that of stubs (see `shown_ledger_path`)."""
    from treewright.orchestrator.ledger.attempts import shown_ledger_path
    from treewright.orchestrator.ledger.ledger import Ledger

    shown = shown_ledger_path(path)
    if not shown.is_file():
        raise UsageError(f"there is no ledger {path}; `treewright bank` or `bg` makes one")
    return Ledger(shown)


def _open_rows(path: Path):
    """Open the ledger to show; if it is that of stubs, say so on stderr."""
    from treewright.orchestrator.ledger.attempts import STUB_NOTICE

    ledger = _open(path)
    if ledger.counts.stubs:
        echo(f"{ledger.path}: {STUB_NOTICE}", err=True)
    return ledger


@ledger.command()
@ledger_option
@json_option
def stats(ledger_path: Path, as_json: bool) -> None:
    """Show the results of each strategy.

    Prints attempts, successes and times of each strategy, and the numbers of proved goals.
    """
    from treewright.orchestrator.ledger.attempts import (
        STUB_NOTICE,
        collect_statistics,
        describe_goals,
    )

    with _open(ledger_path) as opened:
        found = collect_statistics(opened)
    if as_json:
        echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    if found["stubs"]:
        echo(STUB_NOTICE)
    echo(describe_goals(found["goals"]))
    echo(f"{'strategy':<10} {'attempts':>9} {'proved':>7} {'cancelled':>10} {'avg s':>8}")
    for name, row in found["strategies"].items():
        echo(
            f"{name:<10} {row['attempts']:>9} {row['successes']:>7} {row['cancelled']:>10} "
            f"{row['avg_time']:>8.2f}"
        )
    echo(
        f"Lean's CPU time {found['cpu_seconds']:.1f} s, "
        f"{found['wasted_cpu_seconds']:.1f} s of it in cancelled attempts"
    )


@ledger.command()
@option("--limit", type=int, metavar="N", default=20, help="Most attempts to list.")
@option(
    "--goal", metavar="GOAL", default="", help="Only attempts at the goal with this id or text."
)
@option("--strategy", metavar="NAME", default="", help="Only attempts of this strategy.")
@option("--status", metavar="STATUS", default="", help="Only attempts that ended with this status.")
@ledger_option
@json_option
def attempts(
    limit: int, goal: str, strategy: str, status: str, ledger_path: Path, as_json: bool
) -> None:
    """List the latest attempts, the newest first."""
    from treewright.orchestrator.ledger.attempts import find_attempts

    with _open_rows(ledger_path) as opened:
        rows = find_attempts(opened, limit=limit, goal=goal, strategy=strategy, status=status)
    if as_json:
        echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        name = row["goal_id"] or row["goal_text"]
        detail = "; ".join(row["tactics"]) if row["success"] else row["error"] or ""
        echo(
            f"{row['timestamp']}  {row['strategy']:<9} {row['status']:<10} "
            f"{row['time_seconds']:7.2f} s  {name}  {' '.join(detail.split())[:100]}"
        )


@ledger.command()
@option(
    "--format",
    "kind",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    help="Format of the lines.",
)
@option("--output", type=FILE, default_text="stdout", help="File to write.")
@ledger_option
def export(kind: str, output: Path | None, ledger_path: Path) -> None:
    """Export every attempt, the oldest first, one line for each."""
    from treewright.kernel.storage.atomic import storage_errors
    from treewright.orchestrator.ledger.attempts import export_attempts

    with _open_rows(ledger_path) as opened:
        if output is None:
            stdout = sys.stdout
            export_attempts(opened, kind, Visible(stdout) if stdout.isatty() else stdout)
            return
        with (
            storage_errors(output),
            output.open("w", encoding="utf-8", newline="") as target,
        ):
            count = export_attempts(opened, kind, target)
    echo(f"{count} attempts: {output}", err=True)
