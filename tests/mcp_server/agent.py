"""A coding agent for tests: the client of the SDK over stdio, in a separate thread."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult

Progress = Callable[[float, float | None, str | None], None]


class Failed(Exception):
    """The tool answered with an error."""


class Agent:
    def __init__(self, portal: BlockingPortal, client: Client, pid: int) -> None:
        self._portal = portal
        self._client = client
        self.pid = pid

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured answer, which the client has validated by the tool's schema."""
        found = self.result(name, **arguments)
        text = found.content[0].text  # pyright: ignore[reportAttributeAccessIssue]
        if found.is_error:
            assert found.structured_content is None
            raise Failed(text)
        assert isinstance(found.structured_content, dict)
        return found.structured_content

    def result(
        self, tool: str, progress: Progress | None = None, **arguments: Any
    ) -> CallToolResult:
        return self._portal.call(self._call, tool, progress, arguments)

    def many(self, calls: list[tuple[str, dict[str, Any]]]) -> list[CallToolResult]:
        """Make all calls concurrently."""
        return self._portal.call(self._many, calls)

    def cancelled(self, tool: str, **arguments: Any) -> None:
        """Call a tool and cancel the call as soon as the tool reports progress."""
        self._portal.call(self._cancelled, tool, arguments)

    def tools(self) -> dict[str, Any]:
        listed = self._portal.call(self._client.list_tools)
        return {tool.name: tool for tool in listed.tools}

    @property
    def leans(self) -> list[int]:
        """Return the Lean processes of the server."""
        found = descendants(self.pid)
        return [pid for pid in found if b"node" in _command(pid)]

    @property
    def resident(self) -> int:
        """Return the memory of the server and its Lean processes in bytes."""
        return sum(_resident(pid) for pid in (self.pid, *self.leans))

    async def _call(
        self, name: str, progress: Progress | None, arguments: dict[str, Any]
    ) -> CallToolResult:
        async def told(done: float, total: float | None, text: str | None) -> None:
            if progress is not None:
                await anyio.to_thread.run_sync(progress, done, total, text)

        return await self._client.call_tool(name, arguments, progress_callback=told)

    async def _many(self, calls: list[tuple[str, dict[str, Any]]]) -> list[CallToolResult]:
        found: dict[int, CallToolResult] = {}

        async def one(number: int, name: str, arguments: dict[str, Any]) -> None:
            found[number] = await self._client.call_tool(name, arguments)

        async with anyio.create_task_group() as group:
            for number, (name, arguments) in enumerate(calls):
                group.start_soon(one, number, name, arguments)
        return [found[number] for number in sorted(found)]

    async def _cancelled(self, name: str, arguments: dict[str, Any]) -> None:
        async with anyio.create_task_group() as group:

            async def told(done: float, total: float | None, text: str | None) -> None:
                group.cancel_scope.cancel()

            await self._client.call_tool(name, arguments, progress_callback=told)
            raise AssertionError("the call came to its end")


@contextmanager
def agent(*arguments: str, cwd: Path | None = None) -> Iterator[Agent]:
    """A client with a separate server."""
    from mcp import (
        Client,
        StdioServerParameters,
    )  # importing it takes each test worker half a second

    before = set(descendants(os.getpid()))
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "treewright", "mcp", *arguments],
        env=dict(os.environ),
        cwd=cwd,
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(parameters)) as client,
    ):
        started = set(descendants(os.getpid())) - before
        (pid,) = (each for each in started if b"mcp" in _command(each).split(b"\0"))
        yield Agent(portal, client, pid)


def descendants(pid: int) -> list[int]:
    """Return the descendants of a process, from /proc."""
    parents: dict[int, list[int]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(place.name))
    found = list(parents.get(pid, []))
    for each in found:
        found += parents.get(each, [])
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
