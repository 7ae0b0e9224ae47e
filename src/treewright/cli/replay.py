"""`treewright replay`: repeat a proof run and report the first difference."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.lean_choice import open_lean_of_run, sandbox_option
from treewright.cli.options import command, json_option, option, verbose_option
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE, UsageError
from treewright.kernel.text import numbers
from treewright.proving import layout


@command()
@click.argument("run")
@option("--offline", is_flag=True, help="Repeat the decisions from the trace, without Lean.")
@sandbox_option
@json_option
@verbose_option
def replay(run: str, offline: bool, sandbox: bool | None, as_json: bool) -> None:
    """Repeat RUN (an id or a directory) from its run.json, and compare it with its trace.

    The trace must support each verdict in the trace and in result.json. With Lean, every proof is
    checked again by the kind of Lean that the run used. Exit codes: 0 no difference, 1 a
    difference, 2 wrong call.
    """
    import json
    from dataclasses import asdict

    from treewright.cli.prove_settings import opened_source
    from treewright.lean.processes import LeanProcesses
    from treewright.proving.replay import replay_live, replay_offline
    from treewright.proving.run import find_run
    from treewright.proving.settings import read_run
    from treewright.proving.tactics.factory import is_library_index_gone

    if offline and sandbox:
        raise UsageError("--offline starts no Lean, so --sandbox has no effect; leave one out")
    directory = find_run(run, Path.cwd())
    record = read_run(directory / layout.RUN)
    with opened_source(record) as source:
        if offline:
            report = replay_offline(directory, source)
        else:
            axioms = frozenset(record.settings.axioms)
            host, project = open_lean_of_run(record, sandbox)
            with LeanProcesses(host, project, axioms=axioms) as lean:
                changed = is_library_index_gone(record)
                report = replay_live(
                    directory,
                    lean.new_session,
                    source,
                    lean.replayer,
                    recorded=changed,
                )
    if as_json:
        echo(json.dumps(asdict(report), ensure_ascii=False))
    elif report.difference:
        after = numbers.count(report.iterations, "iteration")
        echo(f"differs after {after}: {report.difference}")
    else:
        iterations = numbers.count(report.iterations, "iteration")
        echo(f"the same: {numbers.count(report.goals, 'goal')}, {iterations}")
        for check in report.checks:
            verdict = f"the replay check said {check.reason!r} of text {check.candidate[:12]}"
            echo(f"goal {check.goal}, {check.status}: {verdict}")
    if report.difference:
        raise click.exceptions.Exit(EXIT_FAILURE)
