"""`treewright prove --experiment FILE`: a grid of proof runs, and what they show."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click
import msgspec

from treewright.cellview.experiment.execution import ExperimentState, Progress, run_experiment
from treewright.cellview.experiment.layout import EXPERIMENTS_DIR
from treewright.cellview.experiment.plan import load
from treewright.cellview.experiment.plan_prover import PlanProver
from treewright.cli.hosts import opened_host
from treewright.cli.output import echo
from treewright.cli.signals import cancel_on_signals
from treewright.kernel.errors import EXIT_INTERRUPTED
from treewright.kernel.storage.run_directory import STATE_DIR, hide_from_git, validate_run_id
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer

EXPERIMENTS = Path(STATE_DIR) / EXPERIMENTS_DIR


def experiment(flags: dict[str, Any]) -> None:
    """Runs what is missing of an experiment. Its name, so its directory, comes from the file."""
    plan = load(flags["experiment"])
    name = validate_run_id(flags.get("run_id") or plan.name)
    force = bool(flags.get("force"))
    base = Path.cwd() / EXPERIMENTS
    hide_from_git(base)
    host = opened_host(flags.get("requested"), flags.get("sandbox"))
    with Replayer(host) as replayer, cancel_on_signals() as cancel:
        prover = PlanProver(plan, lambda: HostSession(host), replayer, cancel.is_set, force=force)
        with contextlib.closing(prover):
            state = run_experiment(plan, base / name, prover, _say, force=force)
    _print(name, state, flags)
    if not state.complete:
        echo("treewright: stopped; the same command goes on", err=True)
        raise click.exceptions.Exit(EXIT_INTERRUPTED)


def _say(progress: Progress) -> None:
    if progress.result is not None and not progress.earlier:
        result = progress.result
        echo(
            f"[{progress.done}/{progress.total}] {progress.planned.cell_id}: {result.status} after "
            f"{result.steps} steps",
            err=True,
        )


def _print(name: str, state: ExperimentState, flags: dict[str, Any]) -> None:
    if flags.get("as_json"):
        shown = {
            "experiment": name,
            "directory": str(state.directory),
            "report": str(state.report),
            "finished": state.finished,
            "total": state.total,
            "solved": state.solved,
            "complete": state.complete,
        }
        echo(msgspec.json.encode(shown).decode())
        return
    echo(f"{state.finished} of {state.total} runs finished, {state.solved} proved")
    echo(f"report: {state.report}")
