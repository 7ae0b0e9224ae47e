"""`treewright mcp`: Lean and code searches as tools for coding agents."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from treewright.cli.hosts import BACKENDS
from treewright.cli.numbers import Number
from treewright.cli.output import echo
from treewright.kernel.errors import MissingExtra


@click.command()
@click.option(
    "--root",
    "roots",
    type=click.Path(path_type=Path, file_okay=False),
    multiple=True,
    help="What may be read and written; again for more. [the current directory]",
)
@click.option(
    "--lean",
    "requested",
    type=click.Choice(BACKENDS),
    default="auto",
    show_default=True,
    help="auto takes native inside a Lake project whose toolchain is installed.",
)
@click.option(
    "--sandbox/--no-sandbox",
    default=True,
    show_default=True,
    help="Run native Lean inside bubblewrap; without, its code has your rights.",
)
@click.option("--allow-steering", is_flag=True, help="Also offer what `treewright steer` does.")
@click.option(
    "--max-seconds",
    type=Number(min=1.0, max=86400.0),
    default=600.0,
    show_default=True,
    help="The longest that a call may ask for.",
)
def mcp(
    roots: tuple[Path, ...],
    requested: str,
    sandbox: bool,
    allow_steering: bool,
    max_seconds: float,
) -> None:
    """Serve the Model Context Protocol on stdin and stdout, for one coding agent.

    Started by the agent's configuration; see docs/mcp.md. Paths outside the roots are refused.
    """
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtra("treewright mcp", "mcp")
    from treewright.mcp_server.desk import Desk
    from treewright.mcp_server.server import serve

    desk = Desk(
        roots or (Path.cwd(),),
        lean=requested,
        sandbox=sandbox,
        most_seconds=max_seconds,
        announce=lambda text: echo(f"treewright: {text}", err=True),
    )
    serve(desk, allow_steering=allow_steering)
