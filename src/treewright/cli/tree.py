"""`treewright tree`: search over git commits, by depth or without a barrier."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from treewright.cli.numbers import SECONDS, Number
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FINDINGS, UsageError

_positive = click.IntRange(min=1)
_READ_ONLY_FLAGS = ("tree_run_id", "repo", "report_only", "validate_only")


class _PolicyOption(click.Option):
    """Names the policies that there are, those of plug-ins too, when somebody asks for help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from treewright.search import policies

        known = "; ".join(f"{name}: {kind.summary}" for name, kind in policies.known().items())
        self.help = f"How the next node to try an idea on is chosen. {known}. [beam]"
        return super().get_help_record(ctx)


class _PolicySettings(click.Option):
    """The same for their settings."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from treewright.search import policies

        known = "; ".join(
            f"{name}: {', '.join(kind.__struct_fields__)}"
            for name, kind in policies.known().items()
            if kind.__struct_fields__ and name != policies.Beam.name
        )
        self.help = f"A setting of the policy; may be repeated. {known}."
        return super().get_help_record(ctx)


@click.command()
@click.option("--tree-run-id", metavar="ID", help="Run to start or continue (default: a new one).")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Configuration (default: treewright.toml in the repository).",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Target repository (default: the current one).",
)
@click.option("--policy", metavar="NAME", cls=_PolicyOption)
@click.option("--policy-option", multiple=True, metavar="KEY=VALUE", cls=_PolicySettings)
@click.option(
    "--order",
    type=click.Choice(["fixed", "live"]),
    help="What a choice knows: outcomes in the order of choosing, or all as they come. [fixed]",
)
@click.option(
    "--lookahead",
    type=_positive,
    help="Evaluations chosen ahead of the outcomes they know. [--max-parallel-evals]",
)
@click.option("--branching", type=_positive, help="Most ideas tried per node. [the policy's]")
@click.option("--ideas-per-node", type=_positive, help="Ideas tried, or asked for, per node. [5]")
@click.option("--beam-width", type=_positive, help="Nodes kept per depth, over all parents. [1]")
@click.option("--max-depth", type=_positive, help="Rounds of promotion. [3]")
@click.option("--sweep-config-limit", type=_positive, help="Sweep only config_id < N. [all]")
@click.option(
    "--confirm-configs",
    type=click.IntRange(min=0),
    help="Held-out configs a candidate must hold on before promotion. [0]",
)
@click.option("--max-total-idea-evals", type=_positive, help="Hard cap on evaluations. [none]")
@click.option(
    "--stop-on-empty-frontier/--no-stop-on-empty-frontier",
    default=None,
    help="Stop when nothing passes the gate. [stop]",
)
@click.option(
    "--patience",
    type=_positive,
    help="Stop after so many depths in a row in which nothing passes the gate. [1]",
)
@click.option(
    "--elites",
    type=click.IntRange(min=0),
    help="Best nodes of the run that stay in the frontier beside the promoted ones. [0]",
)
@click.option(
    "--max-cost-usd",
    multiple=True,
    metavar="[ROLE=]USD",
    help="Most that models may cost over the run, or a role; may be repeated. [none]",
)
@click.option(
    "--max-tokens",
    multiple=True,
    metavar="[ROLE=]N",
    help="Most tokens over the run, or of a role; may be repeated. [none]",
)
@click.option(
    "--max-hours",
    type=SECONDS,
    help="Start nothing that would not end within so many hours of this call. [none]",
)
@click.option(
    "--extend",
    is_flag=True,
    help="Go on with a run under other settings: deeper, wider, longer, more patient.",
)
@click.option(
    "--dedupe-scope",
    type=click.Choice(["node_plus_ancestors", "global", "none"]),
    help="Where an idea's text counts as tried before. [node_plus_ancestors]",
)
@click.option("--keep-rejected-worktrees", is_flag=True, help="Keep candidates' worktrees.")
@click.option("--keep-failed-artifacts", is_flag=True, help="Keep all files of failures.")
@click.option(
    "--lock-stale-seconds",
    type=Number(min=1),
    default=120.0,
    show_default=True,
    help="A lock without heartbeat for so long is stale; three missed heartbeats at least.",
)
@click.option("--force", is_flag=True, help="Take over a lock that is not stale.")
@click.option(
    "--make-baseline",
    is_flag=True,
    help="Sweep the root commit and write baseline_csv, if there is none that can be used or code "
    "changed since.",
)
@click.option(
    "--preflight/--no-preflight",
    default=True,
    help="Try the tests, and the sweep on one config, on the root before a new run is made. [try]",
)
@click.option(
    "--max-parallel-evals",
    type=_positive,
    default=1,
    show_default=True,
    help="Evaluations under way at once.",
)
@click.option("--max-parallel-per-node", type=_positive, help="The same, for each parent node.")
@click.option(
    "--parallel-backend",
    metavar="NAME",
    default="threadpool",
    show_default=True,
    help="Where evaluations run: threadpool, dask, or a plug-in's executor.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Scheduler of a running dask cluster (default: a local one).",
)
@click.option(
    "--cluster-remote", metavar="NAME", help="Git remote that the cluster's workers can fetch from."
)
@click.option(
    "--eval-retries",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Tries beyond the first for each failed evaluation that --retry-failures covers.",
)
@click.option(
    "--retry-failures",
    type=click.Choice(["faults", "commands", "all"]),
    help="What --eval-retries covers. faults: endpoints and machines; commands: also tests, sweeps "
    "and agents that failed or ran out of time; all: every failed evaluation. [commands]",
)
@click.option(
    "--eval-timeout-seconds",
    type=SECONDS,
    help="Time limit of a whole evaluation; everything it started is killed. [none]",
)
@click.option("--strict-fail", is_flag=True, help="Stop the depth at the first failure.")
@click.option("--until-done", is_flag=True, help="Repeat until there is a stop reason.")
@click.option(
    "--report-only", is_flag=True, help="Only rewrite TREE_SUMMARY.md, and manifest.json if behind."
)
@click.option(
    "--validate-only", is_flag=True, help="Only check the run and write VALIDATION_REPORT.md."
)
@click.option("--dry-run", is_flag=True, help="Simulate evaluations: no agent, no sweep, no git.")
@click.pass_context
def tree(ctx: click.Context, **flags: Any) -> None:
    """Advance a search over git commits: by one depth with beam search, else to its end.

    Prints one JSON object on stdout and progress on stderr. Run the same command with
    the same --tree-run-id to continue, also after a crash.
    """
    if flags["report_only"] or flags["validate_only"]:
        _read_only(ctx, flags)
    else:
        _search(flags)


def _search(flags: dict[str, Any]) -> None:
    from treewright.cli.progress import SearchProgress
    from treewright.cli.signals import cancel_on_signals
    from treewright.search.registry import given_options
    from treewright.tree.deciding import caps
    from treewright.tree.records import description, forecast, layout
    from treewright.tree.run.cleanup import Retention
    from treewright.tree.run.creation import Shape
    from treewright.tree.run.failure_rules import FailureRules
    from treewright.tree.run.open import RunRequest, open_run, search
    from treewright.tree.run.parallelism import Parallelism
    from treewright.tree.run.policy_choice import PolicyChoice

    if flags["extend"]:
        _check_that_it_exists(flags)
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
            options=given_options(flags["policy_option"]) or None,
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
                    layout.runs_directory(coordinator.repo),
                    flags["max_parallel_evals"],
                )
            )
        runs, workers = layout.runs_directory(coordinator.repo), flags["max_parallel_evals"]
        if (ahead := forecast.forecast(coordinator.manifest, workers, runs)) is not None:
            progress.say(forecast.words(ahead))
        report = search(coordinator, until_done=flags["until_done"])
        progress.say(f"report: {report}")
        document = description.describe(coordinator.manifest, coordinator.store.run_dir)
        document["forecast"] = forecast.forecast(coordinator.manifest, workers, runs)
    _print_json(document)


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
    _print_json(found.document)
    if found.findings:
        sys.exit(EXIT_FINDINGS)


def _check_that_it_exists(flags: dict[str, Any]) -> None:
    """A name that was mistyped must not start, and pay for, a search of its own."""
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
    """A flag that means nothing in the chosen mode is an error."""
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        given = source is click.core.ParameterSource.COMMANDLINE
        if given and parameter.name not in _READ_ONLY_FLAGS:
            raise UsageError(
                f"{parameter.opts[0]} means nothing with --report-only or --validate-only"
            )


def _print_json(document: dict[str, Any]) -> None:
    import msgspec

    echo(msgspec.json.encode(document).decode())
