"""`treewright prove`: search for proofs in Lean, and call proved only what was replayed."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.hosts import host_options, lean_for, lean_of_run
from treewright.cli.numbers import SECONDS, Number
from treewright.cli.output import echo
from treewright.cli.prove_cells import CommandWithCells, cell_options
from treewright.cli.prove_settings import only, settings_of
from treewright.kernel.errors import EXIT_FAILURE, EXIT_INTERRUPTED, UsageError
from treewright.proving import layout
from treewright.search.andor import policies
from treewright.search.registry import in_words

if TYPE_CHECKING:
    from treewright.lean.hosts.host import Host
    from treewright.lean.project.project import Project
    from treewright.proving.api import Proving
    from treewright.proving.run import RunResult
    from treewright.proving.settings import RunRecord, Settings

_positive = click.IntRange(min=1)
_share = Number(0.0, 1.0)
_seconds = SECONDS
_file = click.Path(path_type=Path, dir_okay=False)

_WITH_RESUME = ("resume", "as_json", "in_place", "force", "sandbox", "warm")
_WITH_SERVE = ("serve", "idle")
_WITH_EXPERIMENT = ("experiment", "as_json", "run_id", "force", "requested", "sandbox")


@click.command(cls=CommandWithCells)
@click.argument("target", required=False)
@click.option("--statement", help="A proposition to prove, instead of a file.")
@click.option(
    "--mcts-mode",
    "mode",
    type=click.Choice(["centralized", "distributed"]),
    help="One searcher over the whole tree, or many with local views. [centralized]",
)
@click.option(
    "--policy",
    type=click.Choice([*policies.known(), *policies.unusable()]),
    help=f"Centralized: the next goal by {in_words(policies.known())}. [mcts]",
)
@click.option(
    "--policy-option",
    "policy_options",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting of the policy (`treewright search policies` lists them); may be repeated.",
)
@click.option("--simulations", type=_positive, help="Most simulations per goal. [200]")
@click.option("--time-limit", type=_seconds, help="Most seconds of search per goal. [none]")
@click.option("--step-timeout", type=_seconds, help="Most seconds per tactic. [5]")
@click.option("--batch", type=_positive, help="Tactics tried per simulation. [8]")
@click.option("--tactics", type=_file, help="Tactics to try first, one a line.")
@click.option("--premises", type=click.Path(path_type=Path), help="A premise index to draw on.")
@click.option(
    "--library/--no-library",
    default=None,
    help="Also look lemmas of the bundled library up by words, where nothing else is left; "
    "native Lean goes without. [yes]",
)
@click.option("--ledger", type=_file, help="A ledger to draw on: cached tactics, and lessons.")
@click.option("--llm-url", help="An OpenAI-compatible endpoint that proposes tactics.")
@click.option("--llm-model", help="Its model.")
@click.option("--llm-key-env", metavar="NAME", help="The environment variable with its key.")
@click.option(
    "--usd-per-million-prompt-tokens",
    type=Number(min=0),
    metavar="USD",
    help="Price of a million tokens sent to --llm-url. [unknown]",
)
@click.option(
    "--usd-per-million-completion-tokens",
    type=Number(min=0),
    metavar="USD",
    help="Price of a million tokens that --llm-url answers with. [unknown]",
)
@click.option("--advice", is_flag=True, default=None, help="Also ask Lean's `exact?`; slow.")
@click.option("--noise", type=_share, help="Share of seeded noise in the priors. [0.1]")
@click.option("--refute/--no-refute", default=None, help="Look for a proof of the negation. [yes]")
@click.option("--seed", type=int, help="Of everything that is drawn. [0]")
@click.option("--exploration", type=Number(min=0), help="Exploration constant. [1.2]")
@click.option("--first-play", type=_share, help="First-play urgency. [0.5]")
@click.option("--backup", type=click.Choice(["product", "min"]), help="AND value. [product]")
@click.option("--discount", type=_share, help="What a step leaves of a goal's value. [0.97]")
@click.option("--widen-base", type=Number(min=0), help="Live edges at first. [0]")
@click.option("--widen-scale", type=Number(min=0), help="More with visits. [1]")
@click.option("--widen-power", type=_share, help="To this power of visits. [0.5]")
@click.option("--axioms", help="What a proof may rest on, by commas. [the three of Lean]")
@cell_options
@host_options
@click.option("--experiment", type=_file, help="Run a grid of searches described in TOML.")
@click.option(
    "--warm/--no-warm", default=None, help="Use Lean processes of a server, if one runs. [yes]"
)
@click.option("--serve", is_flag=True, default=None, help="Keep the bundled Lean ready for others.")
@click.option("--idle", type=_seconds, help="With --serve: end after so many minutes. [10]")
@click.option("--run-id", help="Name of the run (default: a timestamp).")
@click.option("--resume", metavar="RUN", help="Continue a run; its settings and Lean are kept.")
@click.option("--force", is_flag=True, default=None, help="Take over a lock that is not stale.")
@click.option(
    "--in-place", is_flag=True, default=None, help="Write what is proved into the file itself."
)
@click.option("--json", "as_json", is_flag=True, default=None, help="One JSON object on stdout.")
def prove(**given: Any) -> None:
    """Prove FILE.lean (every sorry), FILE.lean:theorem, PROJECT (a directory), or a --statement.

    Exit codes: 0 everything is proved and replayed, 1 not everything, 2 wrong call, 3 owned by
    another process, 130 stopped.
    """
    flags = {name: value for name, value in given.items() if value not in (None, ())}
    if "serve" in flags or "idle" in flags:
        if "serve" not in flags:
            raise UsageError("--idle is for --serve")
        only(flags, _WITH_SERVE, "--serve keeps Lean ready and proves nothing")
        from treewright.cli.prove_serve import serve

        serve(flags)
        return
    if "experiment" in flags:
        only(flags, _WITH_EXPERIMENT, "--experiment describes its own searches")
        from treewright.cli.prove_experiment import experiment

        experiment(flags)
        return
    if {"resume", "statement"}.isdisjoint(flags) and Path(flags.get("target", "?")).is_dir():
        from treewright.cli.prove_project import prove_project

        prove_project(Path(flags["target"]), settings_of(flags), flags)
        return
    with contextlib.ExitStack() as stack:
        directory, proving = _prepare(flags, stack)
        result, stopped = _prove(directory, proving, flags)
        _tell(directory, result, flags)  # and then the processes are ended
    if not result.complete and not stopped:
        echo(
            "treewright: a check came to no answer, which is no verdict; "
            f"try it again with --resume {result.run_id}",
            err=True,
        )
    elif not result.complete:
        echo(f"treewright: stopped; go on with --resume {result.run_id}", err=True)
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
    if result.proved < result.total or result.left_alone:
        raise click.exceptions.Exit(EXIT_FAILURE)


def _tell(directory: Path, result: RunResult, flags: dict[str, Any]) -> None:
    echo(f"report: {directory / layout.REPORT}", err=True)
    _print(result, flags)


def _prepare(flags: dict[str, Any], stack: contextlib.ExitStack) -> tuple[Path, Proving]:
    """The directory of the run to continue, or of a new one, and what goes on with it."""
    from treewright.proving import run, targets
    from treewright.proving.run import modules_of, require_unchanged
    from treewright.proving.settings import read_run

    if "resume" in flags:
        only(flags, _WITH_RESUME, "--resume takes its settings from the run")
        directory = run.locate(flags["resume"], Path.cwd())
        record = read_run(directory / layout.RUN)
        host, project = lean_of_run(record, flags.get("sandbox"))
        require_unchanged(record, modules_of(record.target, project))  # before Lean is started
        return directory, stack.enter_context(
            _proving(host, project, record.settings, stack, flags)
        )
    target = targets.parse(flags.get("target"), flags.get("statement"))
    if flags.get("in_place") and flags.get("statement"):
        raise UsageError("--in-place changes a file; there is none with --statement")
    settings = settings_of(flags)
    run.require_free(Path.cwd(), flags.get("run_id"))
    host, project = lean_for(target, flags.get("requested"), flags.get("sandbox"))
    proving = stack.enter_context(_proving(host, project, settings, stack, flags))
    if flags.get("library", True):
        from treewright.cli.prove_serve import announce
        from treewright.proving.tactics.factory import with_library

        settings = with_library(settings, host, announce)
    return proving.create(target, settings, flags.get("run_id")).directory, proving


def _proving(
    host: Host,
    project: Project | None,
    settings: Settings,
    stack: contextlib.ExitStack,
    flags: dict[str, Any],
) -> Proving:
    from treewright.cli.prove_serve import warm_host
    from treewright.lean.crew import Crew

    host = stack.enter_context(warm_host(host, flags))
    crew = stack.enter_context(Crew(host, axioms=frozenset(settings.axioms), project=project))
    # While Lean starts: what is needed next.
    from treewright.cli.prove_progress import narrator
    from treewright.cli.prove_sources import opened_source
    from treewright.proving.api import Proving

    told = replace(narrator(sys.stderr), run=_say_where, written=_say_written)
    return Proving(
        crew.session,
        crew.replayer,
        project,
        Path.cwd(),
        opened_source,
        told,
        in_place=bool(flags.get("in_place")),
    )


def _say_written(path: str) -> None:
    echo(f"written into {path}", err=True)


def _say_where(record: RunRecord, directory: Path) -> None:
    echo(f"run {record.run_id}: {record.settings.searcher}, {directory}", err=True)


def _prove(directory: Path, proving: Proving, flags: dict[str, Any]) -> tuple[RunResult, bool]:
    """What came of the run, and whether somebody stopped it."""
    from treewright.cli.signals import cancel_on_signals

    with cancel_on_signals() as cancel:
        proving.stop_asked = cancel.is_set
        return proving.go_on(directory, force=bool(flags.get("force"))), cancel.is_set()


def _print(result: RunResult, flags: dict[str, Any]) -> None:
    import msgspec

    if flags.get("as_json"):
        echo(msgspec.json.encode(result).decode())
        return
    for goal in result.goals:
        suffix = f": {goal.detail}" if goal.detail else ""
        echo(f"{goal.name}: {goal.status}{suffix}")
        for line in goal.proof.splitlines():
            echo(f"  {line}")
        if goal.partial is not None:
            from treewright.cli.prove_progress import how_far

            for line in how_far(goal.partial):
                echo(f"  {line}")
    echo(f"{result.proved} of {result.total} proved")
    if result.left_alone:
        echo(f"left alone: {', '.join(result.left_alone)}")
    if result.file is not None:
        both = result.proved_file != result.file
        echo(
            f"file with {'all scripts, also partial ones' if both else 'the proofs'}: {result.file}"
        )
        if both and result.proved_file is not None:
            echo(f"file with the proofs: {result.proved_file}")
        elif both and flags.get("in_place"):
            echo("nothing was written into the file itself: what is partial is no proof")
