"""A tool: its name, the records of its arguments and answer, and its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text.config_errors import explain
from treewright.kernel.text.printable import visible
from treewright.mcp_server.call import Call
from treewright.mcp_server.server_state import ServerState


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a tool. Every field is plain JSON."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of a tool."""


class PagedAnswer(Answer, frozen=True, kw_only=True):
    """One page of an answer. `next_offset` is the offset of the next page."""

    left_out: int = 0
    next_offset: int | None = None


@dataclass(frozen=True)
class Tool:
    """One tool.

    `work` runs in a thread. `seconds` returns the time limit of a call, without the start of Lean.
    `writes` is told to the client, which may ask its user first.
    """

    name: str
    does: str
    takes: type[Arguments]
    gives: type[Answer]
    work: Callable[[ServerState, Any, Call], Answer]
    seconds: Callable[[Any], float] = lambda arguments: 60.0
    writes: bool = False

    def read(self, given: dict[str, Any]) -> Arguments:
        """Return the arguments.

        Raises:
            UsageError: An argument is unknown, missing or invalid.
        """
        try:
            return msgspec.convert(given, self.takes)
        except msgspec.ValidationError as error:
            raise UsageError(f"{self.name}: {explain(str(error), self.takes)}") from None

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        return _schema(self.takes)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        return _schema(self.gives)


def _schema(record: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a record, with the record at the top."""
    (_,), components = msgspec.json.schema_components([record], ref_template="#/$defs/{name}")
    top = components.pop(record.__name__)
    return {**top, **({"$defs": components} if components else {})}


def plain(answer: Answer) -> Any:
    """Return the answer as plain JSON, with control characters made visible."""
    return _visible(msgspec.to_builtins(answer))


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): _visible(each) for key, each in value.items()}
    return [_visible(each) for each in value] if isinstance(value, list | tuple) else value
