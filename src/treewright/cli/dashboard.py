"""`treewright dashboard`: see every search live, in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.output import echo


@click.command()
@click.option(
    "--runs",
    "runs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="A project, its .treewright, or one run; may be repeated. [.]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8321,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="NAME",
    help="Address to listen on. Others than loopback need a token.",
)
@click.option("--token", metavar="TEXT", help="Ask for this token. [none on loopback]")
def dashboard(runs: tuple[Path, ...], port: int, host: str, token: str | None) -> None:
    """Serve a read-only view of runs and of the ledger, until interrupted.

    Prints the address to open on stdout. Can be started, killed and started again at any
    time: it never writes into a run and never holds its lock.
    """
    from treewright.dashboard.server import Address, serve

    def announce(url: str) -> None:
        echo(url)
        echo("Ctrl-C ends it; runs go on.", err=True)

    serve(runs or (Path("."),), Address(host, port, token), announce)
