"""`treewright dashboard`: show runs live in a browser."""

from __future__ import annotations

from pathlib import Path

from treewright.cli.options import PATH, Count, command, option, verbose_option
from treewright.cli.output import echo


@command()
@option(
    "--runs",
    "runs",
    type=PATH,
    multiple=True,
    metavar="PATH",
    default_text="the current directory",
    help="Project, its .treewright directory, or one run. Repeatable.",
)
@option(
    "--port",
    type=Count(0, 65535),
    default=8321,
    help="Port to listen on. 0 takes a free port.",
)
@option(
    "--host",
    default="127.0.0.1",
    metavar="NAME",
    help="Address to listen on. Any address but a loopback address needs a token.",
)
@option(
    "--token",
    metavar="TEXT",
    default_text="none on loopback, else a new one",
    help="Token that browsers must send.",
)
@verbose_option
def dashboard(runs: tuple[Path, ...], port: int, host: str, token: str | None) -> None:
    """Serve a read-only view of runs and of the ledger, until it is interrupted.

    Prints the address to open on stdout. You can stop and restart it at any time: the dashboard
    never writes into a run and never takes its lock.
    """
    from treewright.dashboard.server import Address, serve

    def announce(url: str) -> None:
        echo(url)
        echo("Ctrl-C ends the dashboard; runs continue.", err=True)

    serve(runs or (Path("."),), Address(host, port, token), announce)
