"""Messages on stdin and stdout, one per line.

The SDK's transport reads lines of any length and drops invalid messages silently. This transport
limits the length of a line and answers invalid messages with an error. Reading and writing have a
daemon thread each. Other output of the process goes to stderr.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import anyio
import mcp_types
import msgspec
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from treewright.kernel.text import jsontext

MAX_LINE_BYTES = 8 << 20
_CHUNK = 1 << 16
Item = SessionMessage | Exception


class Refused(Exception):
    """A line that is not a message, with the error to answer."""

    def __init__(self, code: int, message: str, request_id: str | int | None = None) -> None:
        super().__init__(message)
        self.reply = mcp_types.JSONRPCError(
            jsonrpc="2.0",
            id=request_id,
            error=mcp_types.ErrorData(code=code, message=message),
        )


def parse(line: bytes) -> SessionMessage:
    """Return the message in a line.

    Raises:
        Refused: The line is not a message.
    """
    text = line.decode("utf-8", "replace")
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError:
        pass
    try:
        document = jsontext.decode(text)
    except msgspec.DecodeError:
        raise Refused(mcp_types.PARSE_ERROR, "that is not JSON") from None
    found = document.get("id") if isinstance(document, dict) else None
    request_id = found if isinstance(found, str) or type(found) is int else None
    raise Refused(mcp_types.INVALID_REQUEST, "that is not a JSON-RPC message", request_id)


def read_lines(descriptor: int, longest: int = MAX_LINE_BYTES) -> Iterator[bytes | None]:
    """Yield the lines; None for a line that is too long."""
    held = bytearray()
    too_long = False
    while data := os.read(descriptor, _CHUNK):
        *whole, rest = data.split(b"\n")
        for piece in whole:
            held += piece
            if too_long or len(held) > longest:
                yield None
            elif held.strip():
                yield bytes(held)
            held.clear()
            too_long = False
        held += rest
        if len(held) > longest:
            held.clear()
            too_long = True
    if held.strip() and not too_long:
        yield bytes(held)


@asynccontextmanager
async def wire() -> AsyncIterator[tuple[anyio.abc.ObjectReceiveStream[Item], _Out]]:
    """Yield the two streams for the SDK's server. Meanwhile fd 0 is empty and fd 1 is stderr."""
    source, sink = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    give, take = anyio.create_memory_object_stream[Item](0)
    outgoing, written = anyio.create_memory_object_stream[SessionMessage](0)
    loop = asyncio.get_running_loop()
    writer = _Writer(sink)

    def read() -> None:
        try:
            for line in read_lines(source):
                asyncio.run_coroutine_threadsafe(_received(line), loop).result()
            asyncio.run_coroutine_threadsafe(give.aclose(), loop).result()
        except (OSError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the server has ended

    async def _received(line: bytes | None) -> None:
        try:
            if line is None:
                raise Refused(
                    mcp_types.INVALID_REQUEST,
                    f"a message may have {MAX_LINE_BYTES >> 20} MiB, and this one was longer",
                )
            await give.send(parse(line))
        except Refused as refused:
            await writer.write(refused.reply)

    async def write() -> None:
        async with written:
            async for item in written:
                await writer.write(item.message)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            yield take, outgoing
    finally:
        os.dup2(sink, 1)


_Out = anyio.abc.ObjectSendStream[SessionMessage]


class _Writer:
    """Writes whole lines to a descriptor, in order."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, name="stdout", daemon=True).start()

    async def write(self, message: mcp_types.JSONRPCMessage) -> None:
        """Write a message, and wait until it is written."""
        data = _line(message)
        done: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((data, done))
        await done

    def _run(self) -> None:
        while True:
            data, done = self._lines.get()
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:
                pass  # the client has gone; the end of stdin follows
            try:
                self._loop.call_soon_threadsafe(_finish, done)
            except RuntimeError:
                return  # the server has ended


def _line(message: mcp_types.JSONRPCMessage) -> bytes:
    """Return a message as a line, or an error message if it cannot be encoded."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:
        request_id = getattr(message, "id", None)
        refused = Refused(mcp_types.INTERNAL_ERROR, "the answer is no JSON", request_id)
        return refused.reply.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
