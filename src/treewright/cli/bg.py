"""`treewright bg`: prove a project's sorries in the background."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from treewright.cli.lean_choice import lean_options
from treewright.cli.options import (
    FILE,
    PATH,
    command,
    json_option,
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
    from treewright.orchestrator.scheduling.dispatch import AttemptBackend, open_backend

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
