"""The tools that change a run; there only if the server was started with `--allow-steering`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from treewright.mcp_server.answer_limits import clipped
from treewright.mcp_server.call import Call
from treewright.mcp_server.run_tools import RunName, find, known
from treewright.mcp_server.server_state import ServerState
from treewright.mcp_server.tool import Answer, Arguments, Tool
from treewright.tree.records import layout, steering
from treewright.tree.run import commands

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
    at: Annotated[str, msgspec.Meta(max_length=64, description="inject: the node.")] = ""
    first: bool = False
    now: bool = False
    times: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = 0
    max_total_idea_evals: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0
    max_depth: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = 0
    ideas_per_node: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = 0
    max_cost_usd: Annotated[str, msgspec.Meta(max_length=100)] = ""
    max_tokens: Annotated[str, msgspec.Meta(max_length=100)] = ""


class Steered(Answer, frozen=True):
    """The command waits for the run's owner, who applies it at the next safe point."""

    command_id: str


def steer(server: ServerState, given: SteerArguments, call: Call) -> Steered:
    run = find(server, given.run)
    options = msgspec.structs.asdict(given)
    for name in commands.SETTINGS:
        options[name] = options[name] or None
    for name in commands.CAPS:
        options[name] = (options[name],) if options[name] else ()
    letter = commands.parse_command(
        given.action,
        given.what or None,
        options,
        spell_option=lambda name: f"`{name}`",
        needs=_NEEDS,
    )
    server.files.place_to_write(run.path.resolve(), layout.STEERING)
    commands.submit(run.path, letter)
    return Steered(letter.command.command_id)


class SteeringArguments(Arguments, frozen=True):
    run: RunName


class Steering(Answer, frozen=True):
    """What was asked of the run, the latest last, and what became of it."""

    waiting: list[str]
    applied: list[str]
    refused: list[str]


def asked(server: ServerState, given: SteeringArguments, call: Call) -> Steering:
    run = find(server, given.run)
    server.files.place_to_write(run.path.resolve(), layout.STEERING)
    with server.trees.manifest(run) as manifest:
        found = commands.list_commands(run.path, known(manifest))
    return Steering(
        [f"{command.action} {command.command_id}" for command in found.waiting[-_MOST:]],
        [clipped(steering.describe(record), 300) for record in found.applied[-_MOST:]],
        [clipped(steering.describe(record), 300) for record in found.refused[-_MOST:]],
    )


TOOLS = (
    Tool("tree_steer", "Change a run while it is there: pause, resume, stop, inject an idea, ban, "
         "boost, reopen, another budget. Applied by its owner at the next safe point.",
         SteerArguments, Steered, steer, writes=True),
    Tool("tree_steering", "What was asked of a run so far, and what became of it.",
         SteeringArguments, Steering, asked),
)  # fmt: skip
