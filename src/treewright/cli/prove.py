"""`treewright prove`: search for proofs in Lean, and call proved only what the judge accepted."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.lean_choice import (
    lean_options,
    open_lean_for_target,
    open_lean_of_run,
)
from treewright.cli.options import (
    FILE,
    PATH,
    Number,
    command,
    json_option,
    option,
    record_options,
    verbose_option,
)
from treewright.cli.output import announce, echo, print_json
from treewright.cli.prove_settings import (
    cell_options,
    parse_settings,
    policy_options,
    refuse_other_flags,
)
from treewright.kernel.errors import EXIT_FAILURE, EXIT_INTERRUPTED, UsageError
from treewright.proving import layout
from treewright.proving.settings import Settings, SourceSettings
from treewright.search.andor import policies
from treewright.search.policy_registry import summaries

if TYPE_CHECKING:
    from treewright.lean.hosts.host import Host
    from treewright.lean.project.project import Project
    from treewright.proving.api import ProofService
    from treewright.proving.run import RunResult
    from treewright.proving.settings import RunRecord

_SEARCH = "Search"
_SOURCES = "Where tactics come from"
_LEAN = "Lean"
_RUN = "Run"
_WITH_RESUME = ("resume", "as_json", "in_place", "force", "sandbox")
_WITH_EXPERIMENT = ("experiment", "as_json", "run_id", "force", "requested", "sandbox")


@command()
@click.argument("target", required=False)
@option(
    "--statement", metavar="TEXT", heading=_RUN, help="Prove this proposition instead of a file."
)
@option(
    "--policy",
    type=click.Choice([*policies.known(), *policies.unusable()]),
    heading=_SEARCH,
    default_text="mcts",
    help=f"How the next goal is chosen. {summaries(policies.known())}.",
)
@record_options(Settings, _SEARCH, ("simulations", "time_limit"), is_rare=False)
@option(
    "--mcts-mode",
    "mode",
    type=click.Choice(["centralized", "distributed"]),
    heading=_SEARCH,
    is_rare=True,
    default_text="centralized",
    help="Search with one searcher over the whole tree, or with many cells that see parts of it.",
)
@option(
    "--policy-option",
    "policy_options",
    metavar="KEY=VALUE",
    multiple=True,
    heading=_SEARCH,
    is_rare=True,
    help="Set one setting of the policy. Repeatable; `treewright search policies` lists them.",
)
@record_options(Settings, _SEARCH, ("step_timeout", "batch", "refute", "seed"))
@option(
    "--tactics", type=FILE, heading=_SOURCES, help="File with tactics to try first, one per line."
)
@option(
    "--premises",
    type=PATH,
    heading=_SOURCES,
    help="Index whose lemmas are tried; `treewright premises build` makes one.",
)
@option(
    "--ledger",
    type=FILE,
    heading=_SOURCES,
    is_rare=True,
    help="Ledger whose cached tactics and lessons are used.",
)
@option(
    "--strategies/--no-strategies",
    default=None,
    heading=_SOURCES,
    is_rare=True,
    default_text="yes",
    help="Try whole strategies, and lemmas found by testing, before the search.",
)
@option(
    "--library/--no-library",
    default=None,
    heading=_SOURCES,
    is_rare=True,
    default_text="yes",
    help="When all other tactics were tried, look up lemmas of the bundled library by words. "
    "Native Lean does not.",
)
@option(
    "--llm-url",
    metavar="URL",
    heading=_SOURCES,
    help="OpenAI-compatible endpoint whose model proposes tactics.",
)
@option("--llm-model", metavar="NAME", heading=_SOURCES, help="Model at --llm-url.")
@option(
    "--llm-key-env",
    metavar="NAME",
    heading=_SOURCES,
    help="Environment variable that holds the key for --llm-url.",
)
@option(
    "--usd-per-million-prompt-tokens",
    type=Number(min=0),
    metavar="USD",
    heading=_SOURCES,
    is_rare=True,
    default_text="unknown",
    help="Price of a million tokens sent to --llm-url.",
)
@option(
    "--usd-per-million-completion-tokens",
    type=Number(min=0),
    metavar="USD",
    heading=_SOURCES,
    is_rare=True,
    default_text="unknown",
    help="Price of a million tokens that --llm-url answers with.",
)
@record_options(SourceSettings, _SOURCES, ("advice", "noise"))
@policy_options
@cell_options
@lean_options
@option(
    "--axioms",
    metavar="NAMES",
    heading=_LEAN,
    is_rare=True,
    default_text="propext,Classical.choice,Quot.sound",
    help="Axioms that a proof may rest on, separated by commas.",
)
@option(
    "--run-id",
    metavar="ID",
    heading=_RUN,
    is_rare=True,
    default_text="the time",
    help="Name of the run.",
)
@option(
    "--resume", metavar="RUN", heading=_RUN, help="Continue this run with its settings and Lean."
)
@option(
    "--in-place",
    is_flag=True,
    default=None,
    heading=_RUN,
    help="Write the proofs into the file itself, not into a copy.",
)
@option(
    "--force",
    is_flag=True,
    default=None,
    heading=_RUN,
    is_rare=True,
    help="Take the run over from a process that is alive.",
)
@option(
    "--experiment",
    type=FILE,
    heading=_RUN,
    is_rare=True,
    help="Run the grid of searches that this TOML file describes.",
)
@json_option
@verbose_option
def prove(**given: Any) -> None:
    """Prove FILE.lean (every sorry), FILE.lean:theorem, PROJECT (a directory), or a --statement.

    Exit codes: 0 everything is proved and checked, 1 not everything, 2 wrong call, 3 another
    process owns the run, 130 stopped.
    """
    flags = {name: value for name, value in given.items() if value is not None and value != ()}
    if not flags["as_json"]:
        del flags["as_json"]
    if "experiment" in flags:
        refuse_other_flags(flags, _WITH_EXPERIMENT, "--experiment describes its own searches")
        from treewright.cli.prove_batches import run_experiment

        run_experiment(flags)
        return
    if {"resume", "statement"}.isdisjoint(flags) and Path(flags.get("target", "?")).is_dir():
        from treewright.cli.prove_batches import prove_project

        prove_project(Path(flags["target"]), parse_settings(flags), flags)
        return
    with contextlib.ExitStack() as stack:
        directory, service = _open_run(flags, stack)
        result, is_stopped = _run(directory, service, flags)
        # Print first: ending the Lean processes takes a while.
        echo(f"report: {directory / layout.REPORT}", err=True)
        _print_result(result, flags)
    if not result.complete and not is_stopped:
        announce(
            f"the check of a proof gave no verdict; try it again with --resume {result.run_id}"
        )
    elif not result.complete:
        announce(f"stopped; continue with --resume {result.run_id}")
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
    if result.proved < result.total or result.left_alone:
        raise click.exceptions.Exit(EXIT_FAILURE)


def _open_run(flags: dict[str, Any], stack: contextlib.ExitStack) -> tuple[Path, ProofService]:
    """Return the directory of the run, new or resumed, and the engine that advances it."""
    from treewright.proving import run, targets
    from treewright.proving.run import imported_modules, require_unchanged
    from treewright.proving.settings import read_run

    if "resume" in flags:
        refuse_other_flags(flags, _WITH_RESUME, "--resume takes its settings from the run")
        directory = run.find_run(flags["resume"], Path.cwd())
        record = read_run(directory / layout.RUN)
        host, project = open_lean_of_run(record, flags.get("sandbox"))
        require_unchanged(
            record, imported_modules(record.target, project)
        )  # before Lean is started
        return directory, _open_engine(host, project, record.settings, stack, flags)
    target = targets.parse(flags.get("target"), flags.get("statement"))
    if flags.get("in_place") and flags.get("statement"):
        raise UsageError("--in-place changes a file; there is none with --statement")
    settings = parse_settings(flags)
    run.require_free(Path.cwd(), flags.get("run_id"))
    host, project = open_lean_for_target(target, flags.get("requested"), flags.get("sandbox"))
    service = _open_engine(host, project, settings, stack, flags)
    if flags.get("library", True):
        from treewright.proving.tactics.factory import add_library_index

        settings = add_library_index(settings, host, announce)
    return service.create(target, settings, flags.get("run_id")).directory, service


def _open_engine(
    host: Host,
    project: Project | None,
    settings: Settings,
    stack: contextlib.ExitStack,
    flags: dict[str, Any],
) -> ProofService:
    from treewright.lean.processes import LeanProcesses

    axioms = frozenset(settings.axioms)
    lean = stack.enter_context(LeanProcesses(host, project, axioms=axioms))
    lean.start()
    # These modules are imported while Lean starts.
    from treewright.cli.prove_progress import narrator
    from treewright.cli.prove_settings import opened_source
    from treewright.proving.api import ProofService

    def announce_run(record: RunRecord, directory: Path) -> None:
        echo(f"run {record.run_id}: {record.settings.searcher}, {directory}", err=True)

    def announce_file(path: str) -> None:
        echo(f"written into {path}", err=True)

    return ProofService(
        lean,
        Path.cwd(),
        opened_source,
        replace(narrator(sys.stderr), run=announce_run, written=announce_file),
        in_place=bool(flags.get("in_place")),
    )


def _run(directory: Path, service: ProofService, flags: dict[str, Any]) -> tuple[RunResult, bool]:
    """Return the result of the run, and whether the user stopped it."""
    from treewright.cli.signals import cancel_on_signals

    with cancel_on_signals() as cancel:
        service.stop_asked = cancel.is_set
        return service.resume(directory, force=bool(flags.get("force"))), cancel.is_set()


def _print_result(result: RunResult, flags: dict[str, Any]) -> None:
    if flags.get("as_json"):
        print_json(result)
        return
    from treewright.cli.prove_progress import describe_goals

    for line in describe_goals(result.goals):
        echo(line)
    echo(f"{result.proved} of {result.total} proved")
    if result.left_alone:
        echo(f"left alone: {', '.join(result.left_alone)}")
    if result.file is not None:
        has_partial = result.proved_file != result.file
        kind = "all scripts, also partial ones" if has_partial else "the proofs"
        echo(f"file with {kind}: {result.file}")
        if has_partial and result.proved_file is not None:
            echo(f"file with the proofs: {result.proved_file}")
        elif has_partial and flags.get("in_place"):
            echo("nothing was written into the file itself, because no proof is complete")
