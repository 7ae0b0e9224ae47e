"""`treewright ledger`: what was tried, and what came of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from treewright.cli.orchestrator_options import ledger_option
from treewright.cli.output import Visible, echo
from treewright.kernel.errors import UsageError

_JSON = click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")


@click.group()
def ledger() -> None:
    """Read the ledger of attempts. Nothing here changes it."""


def _open(path: Path):
    from treewright.orchestrator.ledger.store import Ledger

    if not path.is_file():
        raise UsageError(f"there is no ledger {path}; `treewright bank` or `bg` makes one")
    return Ledger(path)


@ledger.command()
@ledger_option
@_JSON
def stats(ledger_path: Path, as_json: bool) -> None:
    """Attempts, successes and times by strategy; goals proved and open."""
    from treewright.orchestrator.ledger.stats import collect

    with _open(ledger_path) as opened:
        found = collect(opened)
    if as_json:
        echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    goals = found["goals"]
    echo(f"{goals['total']} goals: {goals['proved']} proved, {goals['open']} open")
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
@click.option("--limit", default=20, show_default=True, help="At most so many, newest first.")
@click.option("--goal", default="", help="Only attempts at this goal (its id or text).")
@click.option("--strategy", default="", help="Only attempts of this strategy.")
@click.option("--status", default="", help="Only attempts that ended so.")
@ledger_option
@_JSON
def attempts(
    limit: int, goal: str, strategy: str, status: str, ledger_path: Path, as_json: bool
) -> None:
    """The latest attempts."""
    from treewright.orchestrator.ledger.stats import find_attempts

    with _open(ledger_path) as opened:
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
@click.option("--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file instead of stdout.",
)
@ledger_option
def export(kind: str, output: Path | None, ledger_path: Path) -> None:
    """Every attempt, oldest first, one line each."""
    from treewright.orchestrator.ledger.stats import export_attempts

    with _open(ledger_path) as opened:
        if output is None:
            stdout = sys.stdout
            export_attempts(opened, kind, Visible(stdout) if stdout.isatty() else stdout)
            return
        with output.open("w", encoding="utf-8", newline="") as target:
            count = export_attempts(opened, kind, target)
    echo(f"{count} attempts: {output}", err=True)
