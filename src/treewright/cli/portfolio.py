"""`treewright bank` and `treewright bg`: prove many goals with a portfolio of strategies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from treewright.cli.lean_choice import choose_lean, lean_options, open_choice
from treewright.cli.options import (
    DIRECTORY,
    FILE,
    PATH,
    SECONDS,
    combined,
    command,
    is_verbose,
    json_option,
    ledger_option,
    option,
    record_options,
    verbose_option,
)
from treewright.cli.output import echo, print_json
from treewright.kernel.errors import EXIT_INTERRUPTED, UsageError
from treewright.orchestrator import strategies as strategy_registry
from treewright.orchestrator.config import OrchestratorConfig, from_profile, parse_timeouts

if TYPE_CHECKING:
    from treewright.orchestrator.scheduling.dispatch import AttemptBackend
    from treewright.orchestrator.types import Goal, Result
    from treewright.orchestrator.workers.lean_access import LeanAccess


_STRATEGIES = "Strategies"
_SCHEDULING = "Scheduling"

portfolio_options = combined(
    option(
        "--strategy",
        "strategies",
        multiple=True,
        metavar="NAME",
        heading=_STRATEGIES,
        help_from=lambda: (
            "Use only this strategy. Repeatable. Known strategies: "
            f"{', '.join(strategy_registry.registered())}."
        ),
        default_text="all that are available",
    ),
    option(
        "--strategy-timeout",
        "timeouts",
        multiple=True,
        metavar="NAME=SECONDS",
        heading=_STRATEGIES,
        is_rare=True,
        help="Most seconds of a strategy for one goal. Repeatable.",
    ),
    option(
        "--lessons",
        is_flag=True,
        heading=_STRATEGIES,
        is_rare=True,
        help="Order tactics by the lessons of the ledger's searches. No gain has been measured.",
    ),
    option(
        "--profile",
        type=int,
        metavar="N",
        heading=_SCHEDULING,
        default_text="ORCH_PROFILE, else 1",
        help="Settings for a machine. 0: stubs without Lean; 1: a shared machine; 2: all of it.",
    ),
    record_options(OrchestratorConfig, _SCHEDULING),
)
place_options = combined(
    option(
        "--parallel-backend",
        metavar="NAME",
        heading=_SCHEDULING,
        is_rare=True,
        default_text="threadpool, with --cluster dask",
        help="Where attempts run: threadpool, dask, inline, or the executor of a plug-in.",
    ),
    option(
        "--cluster",
        metavar="ADDRESS",
        heading=_SCHEDULING,
        is_rare=True,
        help="Scheduler of a running dask cluster.",
    ),
)


def make_config(
    *,
    reuse: bool,
    profile: int | None,
    strategies: tuple[str, ...],
    timeouts: tuple[str, ...],
    **settings: int | float | None,
) -> OrchestratorConfig:
    """Return the settings of a profile, changed by the options that were given.

    Args:
        reuse: Whether earlier attempts in the ledger are used.
        settings: The other fields of `OrchestratorConfig`; None keeps the profile's value.
    """
    for name in ("max_heavy", "max_light", "speculation", "lean_sessions"):
        value = settings.get(name)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1")
    strategy_registry.require_known(strategies)
    return msgspec.structs.replace(
        from_profile(profile),
        reuse=reuse,
        strategies=strategies,
        timeouts=parse_timeouts(timeouts),
        **{name: value for name, value in settings.items() if value is not None},
    )


def open_lean_access(
    requested: str | None,
    sandbox: bool | None,
    backend: AttemptBackend,
    config: OrchestratorConfig,
    start: Path,
) -> LeanAccess:
    """Return the access to the Lean processes of a portfolio.

    Attempts on a cluster use the bundled Lean of the cluster's machines.
    """
    from treewright.lean.hosts.native.toolchain import require_toolchain
    from treewright.orchestrator.workers.lean_access import LeanAccess

    sessions = backend.lean_sessions(config)
    if config.profile == 0:
        return LeanAccess(sessions)
    if backend.is_remote:
        if requested == "native":
            raise UsageError("--lean native works on this machine; a cluster has the bundled Lean")
        requested = "wasm"
    choice = choose_lean(requested, sandbox, start if start.is_dir() else start.parent)
    if choice.backend == "wasm":
        return LeanAccess(
            sessions, start=start, announce=lambda text: echo(text, err=True), choice=choice
        )
    name = f"native-{require_toolchain(choice.project).name}"
    return LeanAccess(sessions, lambda: open_choice(choice), name, start=start, choice=choice)


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


@command()
@click.argument("project", type=PATH, default=Path())
@option("--once", is_flag=True, help="Stop after a pass over the project that proves nothing new.")
@option("--in-place", is_flag=True, help="Write proofs into the project's own files.")
@portfolio_options
@place_options
@lean_options
@option(
    "--ledger",
    "ledger_path",
    type=FILE,
    default_text="PROJECT/.treewright/ledger.db",
    help="Ledger of attempts.",
)
@json_option
@verbose_option
def bg(
    project: Path,
    once: bool,
    in_place: bool,
    parallel_backend: str | None,
    cluster: str | None,
    requested: str | None,
    sandbox: bool | None,
    ledger_path: Path | None,
    as_json: bool,
    **portfolio: Any,
) -> None:
    """Prove the `sorry`s of a project in the background, until Ctrl-C or SIGTERM.

    Verified proofs go into PROJECT/.treewright/bg/<run>, as changed files and patches. Your own
    files change only with --in-place. A second signal stops at once. Progress goes to stderr, with
    the counts of `treewright ledger stats`.
    """
    import asyncio

    from treewright.kernel.errors import UsageError
    from treewright.orchestrator.background import Background
    from treewright.orchestrator.ledger.attempts import (
        collect_statistics,
        describe_goals,
        stub_ledger_path,
    )
    from treewright.orchestrator.ledger.ledger import Ledger
    from treewright.orchestrator.ledger.schema import DEFAULT_PATH
    from treewright.orchestrator.scheduling.dispatch import open_backend

    if not project.exists():
        raise UsageError(f"there is no {project}")
    base = project if project.is_dir() else project.parent
    config = make_config(reuse=True, **portfolio)

    async def work(ledger: Ledger, backend: AttemptBackend) -> Background:
        background = Background(
            project,
            ledger,
            config,
            in_place,
            lambda text: echo(text, err=True),
            backend=backend,
            lean=open_lean_access(requested, sandbox, backend, config, project),
        )
        await background.run_until_signalled(once=once)
        return background

    path = ledger_path or base / DEFAULT_PATH
    with (
        open_backend(parallel_backend, cluster, config, project) as backend,
        Ledger(stub_ledger_path(path) if config.profile == 0 else path) as ledger,
    ):
        done = asyncio.run(work(ledger, backend))
        goals = describe_goals(collect_statistics(ledger)["goals"])
    if as_json:
        print_json({"run_id": done.run_id, "proved": done.proved})
    echo(f"{len(done.proved)} declarations proved; the ledger has {goals}", err=True)
    if done.proved:
        echo(f"proofs: {done.directory}", err=True)
