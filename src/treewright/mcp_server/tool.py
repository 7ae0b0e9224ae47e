"""Tools: their arguments and answers, and the limits that keep both small.

Long texts are clipped, and long lists are returned in pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypedDict, TypeVar, get_type_hints

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text.config_errors import explain
from treewright.kernel.text.printable import visible

if TYPE_CHECKING:
    from treewright.mcp_server.call import Call
    from treewright.mcp_server.server_state import ServerState

MAX_TEXT = 1_000_000
"""Longest text that a client may send, in characters, and largest file, in bytes."""
MAX_SHOWN = 4_000
MAX_ITEMS = 200
T = TypeVar("T")

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Name = Annotated[str, msgspec.Meta(max_length=1_000)]
PathText = Annotated[
    str, msgspec.Meta(max_length=4_000, description="A path inside the server's roots.")
]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_ITEMS, description="Most entries in the answer.")]
Offset = Annotated[
    int,
    msgspec.Meta(
        ge=0, le=10**9, description="Entries to skip: 0, or `next_offset` of an earlier answer."
    ),
]


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a tool. Every field is plain JSON."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of a tool."""


class PagedAnswer(Answer, frozen=True, kw_only=True):
    """One page of an answer. `next_offset` is the offset of the next page."""

    left_out: int = 0
    next_offset: int | None = None


def clipped(text: str, longest: int = MAX_SHOWN) -> str:
    """Return the beginning of a text, with the number of the characters left out."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text) - longest} more characters)"


class Rest(TypedDict):
    """The number of entries that are not on a page, and the offset of the next page."""

    left_out: int
    next_offset: int | None


def page(items: Sequence[T], offset: int, limit: int) -> tuple[list[T], Rest]:
    """Return the entries of one page, and what remains."""
    shown = list(items[offset : offset + limit])
    return shown, rest_of(len(items), offset, len(shown))


def rest_of(total: int, offset: int, shown: int) -> Rest:
    """Return what remains after `shown` of `total` entries from an offset on."""
    end = offset + shown
    return Rest(left_out=total - shown, next_offset=end if end < total else None)


A = TypeVar("A", bound=Arguments)
R = TypeVar("R", bound=Answer)
Work = Callable[["ServerState", A, "Call"], R]


@dataclass(frozen=True)
class Tool(Generic[A, R]):
    """One tool.

    Attributes:
        does: The description for the client.
        work: The function of the tool. It runs in a thread.
        seconds: Returns the time limit of a call, without the start of Lean.
        writes: Whether the tool changes files. The client is told, and may ask its user first.
    """

    name: str
    does: str
    takes: type[A]
    gives: type[R]
    work: Work[A, R]
    seconds: Callable[[A], float]
    writes: bool

    def __call__(self, server: ServerState, arguments: A, call: Call) -> R:
        return self.work(server, arguments, call)

    def read(self, given: dict[str, Any]) -> A:
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


def tool(
    name: str, seconds: Callable[[Any], float] = lambda arguments: 60.0, *, writes: bool = False
) -> Callable[[Work[A, R]], Tool[A, R]]:
    """Return a decorator that makes a tool of a function.

    The function's docstring is the description, and its annotations give the records of the
    arguments and of the answer.
    """

    def make(work: Work[A, R]) -> Tool[A, R]:
        hints = get_type_hints(work)
        does = " ".join((work.__doc__ or "").split())
        return Tool(name, does, hints["given"], hints["return"], work, seconds, writes)

    return make


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
