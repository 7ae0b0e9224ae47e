"""`treewright bg`: prove a project's sorries in the background."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from treewright.cli.hosts import host_options, lean_access
from treewright.cli.orchestrator_options import portfolio_options, where_options
from treewright.cli.output import echo


@click.command()
@click.argument("project", type=click.Path(path_type=Path), default=Path())
@click.option("--once", is_flag=True, help="Stop when a pass finds nothing more.")
@click.option("--in-place", is_flag=True, help="Write proofs into the project's own files.")
@portfolio_options
@where_options
@host_options
@click.option(
    "--ledger",
    "ledger_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The ledger of attempts (PROJECT/.treewright/ledger.db).",
)
@click.option("--json", "as_json", is_flag=True, help="At the end, what was proved as JSON.")
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
    """Work through a project's `sorry`s until told to stop (Ctrl-C or SIGTERM; twice: at once).

    Verified proofs go into PROJECT/.treewright/bg/<run>: changed files and patches. Your files
    are not touched unless --in-place is given.
    """
    import asyncio

    import msgspec

    from treewright.cli.orchestrator_options import make_config
    from treewright.kernel.errors import UsageError
    from treewright.orchestrator.ledger.counting import stub_ledger
    from treewright.orchestrator.ledger.file import DEFAULT_PATH
    from treewright.orchestrator.ledger.store import Ledger
    from treewright.orchestrator.running.background import Background
    from treewright.orchestrator.running.placing import attempting
    from treewright.orchestrator.scheduling.dispatch import Attempting

    if not project.exists():
        raise UsageError(f"there is no {project}")
    base = project if project.is_dir() else project.parent
    config = make_config(reuse=True, **portfolio)

    async def work(ledger: Ledger, where: Attempting) -> Background:
        background = Background(
            project,
            ledger,
            config,
            in_place,
            lambda text: echo(text, err=True),
            attempting=where,
            lean=lean_access(requested, sandbox, where, config, project),
        )
        await background.run_until_signalled(once=once)
        return background

    path = ledger_path or base / DEFAULT_PATH
    with (
        attempting(parallel_backend, cluster, config, project) as where,
        Ledger(stub_ledger(path) if config.profile == 0 else path) as ledger,
    ):
        done = asyncio.run(work(ledger, where))
    if as_json:
        document = {"run_id": done.run_id, "proved": done.proved}
        echo(msgspec.json.encode(document).decode())
    echo(f"{len(done.proved)} declarations proved", err=True)
    if done.proved:
        echo(f"proofs: {done.directory}", err=True)
