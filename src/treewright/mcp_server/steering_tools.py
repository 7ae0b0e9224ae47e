"""The tools that change a run. They are offered only with `--allow-steering`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from treewright.mcp_server.call import Call
from treewright.mcp_server.run_tools import RunName, find, require_manifest
from treewright.mcp_server.server_state import ServerState
from treewright.mcp_server.tool import Answer, Arguments, clipped, tool
from treewright.tree.records import layout, steering
from treewright.tree.run import command_files

_NEEDS = {
    "inject": "`what`: the text of the idea",
    "ban": "`what`: a node or a pattern",
    "boost": "`what`: a node",
    "reopen": "`what`: a node or a quarantined evaluation",
}
_MOST = 50


class SteerArguments(Arguments, frozen=True):
    run: RunName
    action: Literal["pause", "resume", "stop", "inject", "ban", "boost", "reopen", "budget"]
    what: Annotated[
        str,
        msgspec.Meta(
            max_length=200_000,
            description="inject: the idea's Markdown; ban: a node, or a pattern with * and ?; "
            "boost: a node; reopen: a node or a quarantined evaluation.",
        ),
    ] = ""
    at: Annotated[
        str,
        msgspec.Meta(
            max_length=64, description="inject: node for the idea; the best node if empty."
        ),
    ] = ""
    first: Annotated[bool, msgspec.Meta(description="inject: before all other ideas.")] = False
    now: Annotated[bool, msgspec.Meta(description="stop: end running evaluations.")] = False
    times: Annotated[
        int, msgspec.Meta(ge=0, le=10**6, description="boost: number of ideas tried next.")
    ] = 0
    max_total_idea_evals: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0
    max_depth: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = 0
    ideas_per_node: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = 0
    max_cost_usd: Annotated[str, msgspec.Meta(max_length=100)] = ""
    max_tokens: Annotated[str, msgspec.Meta(max_length=100)] = ""


class Steered(Answer, frozen=True):
    """The id of the command. The owner of the run applies it at the next safe point."""

    command_id: str


@tool("tree_steer", writes=True)
def steer(server: ServerState, given: SteerArguments, call: Call) -> Steered:
    """Change a run: pause, resume or stop it, inject an idea, ban or boost a node, reopen a
    node or an evaluation, or set limits.

    Returns the id of the command, which the owner of the run applies at the next safe point.
    """
    run = find(server, given.run)
    options = msgspec.structs.asdict(given)
    for name in command_files.SETTINGS:
        options[name] = options[name] or None
    for name in command_files.CAPS:
        options[name] = (options[name],) if options[name] else ()
    letter = command_files.parse_command(
        given.action,
        given.what or None,
        options,
        spell_option=lambda name: f"`{name}`",
        needs=_NEEDS,
    )
    server.files.resolve_target(run.path.resolve(), layout.STEERING)
    command_files.submit(run.path, letter)
    return Steered(letter.command.command_id)


class SteeringArguments(Arguments, frozen=True):
    run: RunName


class Steering(Answer, frozen=True):
    """The commands for a run by their state, the latest last."""

    waiting: list[str]
    applied: list[str]
    refused: list[str]


@tool("tree_steering")
def asked(server: ServerState, given: SteeringArguments, call: Call) -> Steering:
    """List the commands for a run: waiting, applied and refused ones."""
    run = find(server, given.run)
    server.files.resolve_target(run.path.resolve(), layout.STEERING)
    with server.trees.manifest(run) as manifest:
        found = command_files.list_commands(run.path, require_manifest(manifest))
    return Steering(
        [f"{command.action} {command.command_id}" for command in found.waiting[-_MOST:]],
        [clipped(steering.describe(record), 300) for record in found.applied[-_MOST:]],
        [clipped(steering.describe(record), 300) for record in found.refused[-_MOST:]],
    )
