"""HTTP requests with a limit on the size and on the duration of the whole reply.

A timeout for each read is not enough: a server that sends a byte a second never exceeds it, and a
reply without an end fills the memory. So the caller sets a deadline, a size, and a function that
says when the reply is no longer wanted.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from ssl import SSLContext

LONGEST_REPLY = 16 * 1024 * 1024
_CANCEL_TICK_SECONDS = 0.1
T = TypeVar("T")

Unwanted = Callable[[], bool]
"""Returns whether the reply is no longer wanted; called regularly."""


def when_set(event: threading.Event | None) -> Unwanted:
    """Return a function that says whether the event is set; without an event it never is."""
    return (lambda: False) if event is None else event.is_set


class Cancelled(Exception):
    """The reply is no longer wanted."""


class NoReply(Exception):
    """There is no usable reply. The message continues the name of the endpoint."""

    def __init__(self, kind: Literal["address", "unreachable", "too_long"], what: str) -> None:
        super().__init__(what)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply with any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


async def post(
    url: str,
    body: object,
    *,
    headers: Mapping[str, str],
    seconds: float,
    unwanted: Unwanted = lambda: False,
    most: int = LONGEST_REPLY,
) -> Reply:
    """Send a JSON document and return the reply. Needs the extra `llm`.

    Redirections are not followed; they are returned as replies.

    Args:
        url: The address.
        body: The document.
        headers: Headers of the request.
        seconds: The limit for the whole request, from the DNS lookup to the last byte.
        unwanted: Cancels the request when it returns true.
        most: The largest size of the reply in bytes.

    Raises:
        TimeoutError: The reply was not complete in time.
        Cancelled: `unwanted` returned true.
        NoReply: The server cannot be reached, or the reply is too long.
    """
    return await within(_post(url, body, headers, seconds, most), seconds, unwanted)


async def _post(
    url: str, body: object, headers: Mapping[str, str], seconds: float, most: int
) -> Reply:
    import httpx

    plain: dict[str, Any] = {"Accept-Encoding": "identity", **headers}
    trusted = _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    try:
        client_context = httpx.AsyncClient(verify=trusted, timeout=seconds, follow_redirects=False)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        # httpx reads the proxies of the environment here. A proxy's password is not quoted.
        why = "SOCKS needs the package socksio" if isinstance(error, ImportError) else "not a proxy"
        raise NoReply("address", f"cannot be asked: *_PROXY of the environment: {why}") from None
    try:
        async with (
            client_context as client,
            client.stream("POST", url, json=body, headers=plain) as response,
        ):
            chunks: list[bytes] = []
            size = 0
            async for chunk in response.aiter_bytes():
                size += len(chunk)
                if size > most:
                    raise NoReply("too_long", f"answered with more than {most:,} bytes")
                chunks.append(chunk)
            return Reply(response.status_code, dict(response.headers), b"".join(chunks))
    except httpx.TimeoutException:
        raise TimeoutError from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise NoReply("address", "is not an http(s) address") from None
    except httpx.HTTPError as error:
        what = f"cannot be reached ({type(error).__name__})"
        raise NoReply("unreachable", what) from None


@functools.cache
def _trusted(file: str | None, directory: str | None) -> SSLContext:
    """Return the certificates that these variables name, or those of httpx.

    They are cached, because reading them takes longer than a request to a server nearby.
    """
    import httpx

    return httpx.create_ssl_context()


async def within(work: Awaitable[T], seconds: float, unwanted: Unwanted = lambda: False) -> T:
    """Wait for `work`.

    Raises:
        TimeoutError: It did not end within `seconds`.
        Cancelled: `unwanted` returned true.
    """
    task = asyncio.ensure_future(work)
    deadline = time.monotonic() + seconds
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            done, _ = await asyncio.wait({task}, timeout=min(left, _CANCEL_TICK_SECONDS))
            if done:
                return task.result()
            if unwanted():
                raise Cancelled
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
