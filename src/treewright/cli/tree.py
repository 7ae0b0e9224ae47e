"""`treewright tree`: search over git commits, by depth with beam search, else to its end."""

from __future__ import annotations

import sys
from typing import Any

import click

from treewright.cli.options import (
    FILE,
    NOT_NEGATIVE,
    POSITIVE,
    SECONDS,
    TARGET_REPO,
    Number,
    command,
    option,
    verbose_option,
)
from treewright.cli.output import echo, print_json
from treewright.kernel.errors import EXIT_FINDINGS, UsageError

_RUN = "Run"
_SEARCH = "Search"
_MEASURING = "Measurement"
_LIMITS = "Limits"
_PARALLEL = "Parallel evaluations"
_FAILURES = "Failures"
_READ_ONLY = "Reports and checks of a run that is not continued"
_READ_ONLY_FLAGS = ("tree_run_id", "repo", "report_only", "validate_only")


def _policy_help() -> str:
    """Name all policies, also those of plug-ins."""
    from treewright.search import policies

    known = "; ".join(f"{name}: {kind.summary}" for name, kind in policies.known().items())
    return f"How the node for the next idea is chosen. {known}."


def _policy_option_help() -> str:
    """Name the settings of all policies but beam search, which has separate flags."""
    from treewright.search import policies

    known = "; ".join(
        f"{name}: {', '.join(kind.__struct_fields__)}"
        for name, kind in policies.known().items()
        if kind.__struct_fields__ and name != policies.Beam.name
    )
    return f"Set one setting of the policy. Repeatable. {known}."


@command()
@option(
    "--tree-run-id",
    metavar="ID",
    heading=_RUN,
    default_text="a new run",
    help="Run to start or continue.",
)
@TARGET_REPO
@option(
    "--config",
    "config_path",
    type=FILE,
    heading=_RUN,
    default_text="treewright.toml of the repository",
    help="Configuration of a new run.",
)
@option(
    "--until-done",
    is_flag=True,
    heading=_RUN,
    help="Search on until there is a stop reason, not only for one depth.",
)
@option(
    "--dry-run",
    is_flag=True,
    heading=_RUN,
    help="Simulate the evaluations: no agent, no sweep, no commits.",
)
@option(
    "--make-baseline",
    is_flag=True,
    heading=_RUN,
    help="Sweep the root commit and write baseline_csv, if it is missing, not usable or older than "
    "the code.",
)
@option(
    "--extend",
    is_flag=True,
    heading=_RUN,
    is_rare=True,
    help="Continue a run with other settings: deeper, wider, longer or more patient.",
)
@option(
    "--preflight/--no-preflight",
    default=True,
    heading=_RUN,
    is_rare=True,
    help="Before a new run, try the tests and the sweep of one config on the root commit.",
)
@option(
    "--force",
    is_flag=True,
    heading=_RUN,
    is_rare=True,
    help="Take the run over from a process that is alive.",
)
@option(
    "--lock-stale-seconds",
    type=Number(min=1),
    metavar="SECONDS",
    default=120.0,
    heading=_RUN,
    is_rare=True,
    help="Take the run over from an owner without a heartbeat for this long. At least three "
    "heartbeats must be missing.",
)
@option("--policy", metavar="NAME", heading=_SEARCH, default_text="beam", help_from=_policy_help)
@option(
    "--policy-option",
    multiple=True,
    metavar="KEY=VALUE",
    heading=_SEARCH,
    is_rare=True,
    help_from=_policy_option_help,
)
@option(
    "--ideas-per-node",
    type=POSITIVE,
    heading=_SEARCH,
    default_text="5",
    help="Ideas tried on each node; with a policy other than beam, ideas requested at a time.",
)
@option(
    "--beam-width",
    type=POSITIVE,
    heading=_SEARCH,
    default_text="1",
    help="Nodes kept for each depth, over all parents.",
)
@option(
    "--max-depth",
    type=POSITIVE,
    heading=_SEARCH,
    default_text="3",
    help="Most rounds of promotion; with a policy other than beam, the greatest distance of a node "
    "from the root.",
)
@option(
    "--patience",
    type=POSITIVE,
    heading=_SEARCH,
    is_rare=True,
    default_text="1",
    help="Stop after this many depths in a row without a promotion.",
)
@option(
    "--stop-on-empty-frontier/--no-stop-on-empty-frontier",
    default=None,
    heading=_SEARCH,
    is_rare=True,
    default_text="stop",
    help="Whether a depth without a promotion ends the run.",
)
@option(
    "--elites",
    type=NOT_NEGATIVE,
    heading=_SEARCH,
    is_rare=True,
    default_text="0",
    help="Best nodes of the run that stay in the frontier, next to the promoted nodes.",
)
@option(
    "--branching",
    type=POSITIVE,
    heading=_SEARCH,
    is_rare=True,
    default_text="the policy's",
    help="Most ideas tried on one node.",
)
@option(
    "--order",
    type=click.Choice(["fixed", "live"]),
    heading=_SEARCH,
    is_rare=True,
    default_text="fixed",
    help="Outcomes that a choice uses. fixed: those of choices at least --lookahead earlier, so "
    "that timing changes nothing; live: all that have arrived.",
)
@option(
    "--lookahead",
    type=POSITIVE,
    heading=_SEARCH,
    is_rare=True,
    default_text="--max-parallel-evals",
    help="Evaluations chosen before the outcome of the first of them is used.",
)
@option(
    "--dedupe-scope",
    type=click.Choice(["node_plus_ancestors", "global", "none"]),
    heading=_SEARCH,
    is_rare=True,
    default_text="node_plus_ancestors",
    help="Ideas with which a new one is compared; an equal text makes it a duplicate: those of the "
    "node and its ancestors, those of the whole run (global), or none.",
)
@option(
    "--sweep-config-limit",
    type=POSITIVE,
    heading=_MEASURING,
    default_text="all configs of the baseline",
    help="Sweep and compare only configs with config_id < N.",
)
@option(
    "--confirm-configs",
    type=NOT_NEGATIVE,
    heading=_MEASURING,
    is_rare=True,
    default_text="0",
    help="Held-out configs, from --sweep-config-limit on, that a candidate must pass before it is "
    "promoted.",
)
@option(
    "--max-total-idea-evals",
    type=POSITIVE,
    heading=_LIMITS,
    default_text="no limit",
    help="Most evaluations over the whole run.",
)
@option(
    "--max-cost-usd",
    multiple=True,
    metavar="[ROLE=]USD",
    heading=_LIMITS,
    default_text="no limit",
    help="Most US dollars that models may cost over the run, or in one role. Repeatable.",
)
@option(
    "--max-tokens",
    multiple=True,
    metavar="[ROLE=]N",
    heading=_LIMITS,
    is_rare=True,
    default_text="no limit",
    help="Most tokens of models over the run, or in one role. Repeatable.",
)
@option(
    "--max-hours",
    type=SECONDS,
    metavar="HOURS",
    heading=_LIMITS,
    default_text="no limit",
    help="Start no evaluation that would end later than this many hours after the call.",
)
@option(
    "--eval-timeout-seconds",
    type=SECONDS,
    heading=_LIMITS,
    is_rare=True,
    default_text="no limit",
    help="Most seconds for one evaluation. All its processes are killed then.",
)
@option(
    "--max-parallel-evals",
    type=POSITIVE,
    default=1,
    heading=_PARALLEL,
    help="Evaluations that run at the same time.",
)
@option(
    "--max-parallel-per-node",
    type=POSITIVE,
    heading=_PARALLEL,
    is_rare=True,
    default_text="no limit",
    help="Evaluations of one parent node that run at the same time.",
)
@option(
    "--parallel-backend",
    metavar="NAME",
    default="threadpool",
    heading=_PARALLEL,
    is_rare=True,
    help="Where evaluations run: threadpool, dask, or the executor of a plug-in.",
)
@option(
    "--cluster",
    metavar="ADDRESS",
    heading=_PARALLEL,
    is_rare=True,
    default_text="a local cluster",
    help="Scheduler of a running dask cluster.",
)
@option(
    "--cluster-remote",
    metavar="NAME",
    heading=_PARALLEL,
    is_rare=True,
    help="Git remote from which the cluster's workers can fetch.",
)
@option(
    "--eval-retries",
    type=NOT_NEGATIVE,
    default=0,
    heading=_FAILURES,
    is_rare=True,
    help="Retries of each failed evaluation that --retry-failures covers.",
)
@option(
    "--retry-failures",
    type=click.Choice(["faults", "commands", "all"]),
    heading=_FAILURES,
    is_rare=True,
    default_text="commands",
    help="Failures that --eval-retries covers. faults: endpoints and machines; commands: also "
    "tests, sweeps and agents that failed or ran out of time; all: every failed evaluation.",
)
@option(
    "--strict-fail",
    is_flag=True,
    heading=_FAILURES,
    is_rare=True,
    help="Stop at the first failed evaluation.",
)
@option(
    "--keep-failed-artifacts",
    is_flag=True,
    heading=_FAILURES,
    is_rare=True,
    help="Keep all files of failed evaluations, not only their logs and summaries.",
)
@option(
    "--keep-rejected-worktrees",
    is_flag=True,
    heading=_FAILURES,
    is_rare=True,
    help="Keep the worktrees of candidates that were not promoted.",
)
@option(
    "--report-only",
    is_flag=True,
    heading=_READ_ONLY,
    is_rare=True,
    help="Only rewrite TREE_SUMMARY.md, and manifest.json if it is behind.",
)
@option(
    "--validate-only",
    is_flag=True,
    heading=_READ_ONLY,
    is_rare=True,
    help="Only check the run and write VALIDATION_REPORT.md.",
)
@verbose_option
@click.pass_context
def tree(ctx: click.Context, **flags: Any) -> None:
    """Advance a search over git commits: by one depth with beam search, else to its end.

    Prints one JSON object on stdout and progress on stderr. To continue a run, also after a
    crash, give the same command with its --tree-run-id.
    """
    if flags["report_only"] or flags["validate_only"]:
        _read_only(ctx, flags)
    else:
        _search(flags)


def _search(flags: dict[str, Any]) -> None:
    from treewright.cli.signals import cancel_on_signals
    from treewright.cli.tree_progress import SearchProgress
    from treewright.search.policy_registry import parse_options
    from treewright.tree.deciding import caps
    from treewright.tree.records import description, layout
    from treewright.tree.run.cleanup import Retention
    from treewright.tree.run.creation import PolicyChoice, Shape
    from treewright.tree.run.open import RunRequest, open_run, search
    from treewright.tree.run.outcomes import FailureRules
    from treewright.tree.run.parallelism import Parallelism

    if flags["extend"]:
        _require_run(flags)
    request = RunRequest(
        repo=flags["repo"],
        run_id=flags["tree_run_id"],
        config_path=flags["config_path"],
        shape=Shape(
            **{
                name: flags[name]
                for name in Shape.__dataclass_fields__
                if name not in ("dry_run", "caps")
            },
            dry_run=flags["dry_run"] or None,
            caps=caps.parse({"cost_usd": flags["max_cost_usd"], "tokens": flags["max_tokens"]})
            or None,
        ),
        choosing=PolicyChoice(
            policy=flags["policy"],
            options=parse_options(flags["policy_option"]) or None,
            order=flags["order"],
            lookahead=flags["lookahead"],
            branching=flags["branching"],
        ),
        make_baseline=flags["make_baseline"],
        preflight=flags["preflight"],
        retention=Retention(flags["keep_rejected_worktrees"], flags["keep_failed_artifacts"]),
        failure_rules=FailureRules(
            retries=flags["eval_retries"],
            retried=flags["retry_failures"],
            strict=flags["strict_fail"],
            timeout_seconds=flags["eval_timeout_seconds"],
            max_per_node=flags["max_parallel_per_node"],
        ),
        parallelism=Parallelism(
            max_evals=flags["max_parallel_evals"],
            backend=flags["parallel_backend"],
            cluster=flags["cluster"],
            cluster_remote=flags["cluster_remote"],
        ),
        stale_seconds=flags["lock_stale_seconds"],
        force=flags["force"],
        extend=flags["extend"],
        max_hours=flags["max_hours"],
    )
    with (
        SearchProgress() as progress,
        cancel_on_signals() as cancel,
        open_run(request, progress, cancel) as coordinator,
    ):
        progress.resume(coordinator.store.run_dir, coordinator.manifest)
        if coordinator.manifest.dry_run:
            progress.say(
                description.estimate(
                    coordinator.manifest,
                    layout.runs_directory(coordinator.parts.repo),
                    flags["max_parallel_evals"],
                )
            )
        runs, workers = layout.runs_directory(coordinator.parts.repo), flags["max_parallel_evals"]
        if (ahead := description.make_forecast(coordinator.manifest, workers, runs)) is not None:
            progress.say(description.describe_forecast(ahead))
        report = search(coordinator, until_done=flags["until_done"])
        progress.say(f"report: {report}")
        document = description.describe(coordinator.manifest, coordinator.store.run_dir)
        document["forecast"] = description.make_forecast(coordinator.manifest, workers, runs)
    print_json(document)


def _read_only(ctx: click.Context, flags: dict[str, Any]) -> None:
    from treewright.tree.inspection import inspect

    _refuse_other_flags(ctx)
    if flags["tree_run_id"] is None:
        raise UsageError("--report-only and --validate-only need --tree-run-id")
    found = inspect(
        flags["repo"],
        flags["tree_run_id"],
        report=flags["report_only"],
        validation=flags["validate_only"],
    )
    if found.validation is not None:
        echo(f"{len(found.findings)} findings: {found.validation}", err=True)
    if found.report is not None:
        echo(f"report: {found.report}", err=True)
    print_json(found.document)
    if found.findings:
        sys.exit(EXIT_FINDINGS)


def _require_run(flags: dict[str, Any]) -> None:
    """Refuse to extend a run that does not exist, so that a mistyped name starts no new search."""
    from treewright.tree.records import store
    from treewright.tree.run.open import locate

    if flags["tree_run_id"] is None:
        raise UsageError("--extend goes on with a run: name it with --tree-run-id")
    _, run_dir = locate(flags["repo"], flags["tree_run_id"])
    if not store.exists(run_dir):
        raise UsageError(
            f"no tree run at {run_dir} to extend; check --tree-run-id and --repo, or leave "
            "--extend out to start it"
        )


def _refuse_other_flags(ctx: click.Context) -> None:
    """Raise `UsageError` for a flag that --report-only and --validate-only do not use."""
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        given = source is click.core.ParameterSource.COMMANDLINE
        if given and parameter.name not in _READ_ONLY_FLAGS:
            raise UsageError(
                f"{parameter.opts[0]} means nothing with --report-only or --validate-only"
            )
