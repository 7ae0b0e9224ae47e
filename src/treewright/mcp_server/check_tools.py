"""The tool that checks a text, and how tools are given one."""

from __future__ import annotations

from typing import Annotated

import msgspec

from treewright.kernel.errors import UsageError
from treewright.mcp_server.bounds import (
    Limit,
    Offset,
    PathText,
    Text,
    clipped,
    page,
)
from treewright.mcp_server.call import Call
from treewright.mcp_server.desk import Desk
from treewright.mcp_server.faults import answered
from treewright.mcp_server.place import Place
from treewright.mcp_server.tool import Answer, Arguments, PagedAnswer, Tool

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400, description="Time for Lean.")]


class Source(msgspec.Struct, frozen=True):
    """A text of Lean, where it is from, and the Lean for it."""

    text: str
    place: Place


def read_source(desk: Desk, path: str, text: str, project: str = "") -> Source:
    """Either a file, or a text that may import what the project at `project` has."""
    if bool(path) == bool(text):
        raise UsageError("give one of `path` and `text`")
    if path:
        if project:
            raise UsageError("`project` goes with `text`; a file has its own")
        file = desk.files.resolve(path)
        return Source(desk.files.read(file), desk.place(file))
    start = desk.files.resolve(project) if project else desk.files.first
    return Source(text, desk.place(start))


# -- check ----------------------------------------------------------------------------------


class Message(Answer, frozen=True):
    """Lines and columns count from 1."""

    severity: str
    line: int
    column: int
    text: str


class CheckArguments(Arguments, frozen=True):
    path: PathText = ""
    text: Text = ""
    project: PathText = ""
    seconds: Seconds = 60.0
    limit: Limit = 50
    offset: Offset = 0


class Checked(PagedAnswer, frozen=True):
    """`ok`: Lean took all of it, without an error and without `sorry`."""

    ok: bool
    errors: int
    warnings: int
    sorries: list[str]
    messages: list[Message]


def check(desk: Desk, given: CheckArguments, call: Call) -> Checked:
    source = read_source(desk, given.path, given.text, given.project)
    result = answered(source.place.ask(call, lambda s: s.check(source.text, timeout=given.seconds)))
    call.go_on()
    shown, rest = page(result.diagnostics, given.offset, given.limit)
    counts = [diagnostic.severity for diagnostic in result.diagnostics]
    return Checked(
        result.ok,
        counts.count("error"),
        counts.count("warning"),
        [clipped(name, 200) for name in result.unproved[: given.limit]],
        [Message(d.severity, d.line, d.column + 1, clipped(d.text)) for d in shown],
        **rest,
    )


TOOLS = (
    Tool(
        "lean_check",
        "Check a Lean 4 file, or a text, with a real Lean: errors, warnings, what rests on sorry. "
        "An error result means that nothing is known, never that the text is fine.",
        CheckArguments,
        Checked,
        check,
        lambda given: given.seconds,
    ),
)
