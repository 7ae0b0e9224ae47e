"""`treewright mcp`: serve Lean and code searches to a coding agent."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from treewright.cli.lean_choice import BACKENDS
from treewright.cli.options import DIRECTORY, Number, command, option, verbose_option
from treewright.cli.output import announce
from treewright.kernel.errors import MissingExtra


@command()
@option(
    "--root",
    "roots",
    type=DIRECTORY,
    multiple=True,
    default_text="the current directory",
    help="Directory in which the agent's calls may read and write. Repeatable.",
)
@option(
    "--lean",
    "requested",
    type=click.Choice(BACKENDS),
    default="auto",
    help="Lean to use: bundled (wasm) or a toolchain (native). auto takes native inside a Lake "
    "project whose toolchain is installed.",
)
@option(
    "--sandbox/--no-sandbox",
    default=True,
    help="Run native Lean inside bubblewrap. Without it, code in Lean files has your rights.",
)
@option("--allow-steering", is_flag=True, help="Also offer the commands of `treewright steer`.")
@option(
    "--max-seconds",
    type=Number(min=1.0, max=86400.0),
    metavar="SECONDS",
    default=600.0,
    help="Longest time limit that a call may ask for.",
)
@verbose_option
def mcp(
    roots: tuple[Path, ...],
    requested: str,
    sandbox: bool,
    allow_steering: bool,
    max_seconds: float,
) -> None:
    """Serve the Model Context Protocol on stdin and stdout, for one coding agent.

    The agent's configuration starts this command: see docs/mcp.md. Paths outside the roots are
    refused.
    """
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtra("treewright mcp", "mcp")
    from treewright.mcp_server.server import serve
    from treewright.mcp_server.server_state import ServerState

    server = ServerState(
        roots or (Path.cwd(),),
        lean=requested,
        sandbox=sandbox,
        most_seconds=max_seconds,
        announce=announce,
    )
    serve(server, allow_steering=allow_steering)
