"""Asking a server that may never stop answering: every reply has a size, a deadline and an end.

A limit for each read is not enough: a byte a second keeps that for ever, and a reply without an
end fills the memory. Whoever asks says when it has to be over, how much it takes, and how it
learns that nobody wants the answer any more.
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
"""Whether the answer is not wanted any more; asked again and again."""


def once_set(event: threading.Event | None) -> Unwanted:
    """Unwanted from when the event is set; without one, never."""
    return (lambda: False) if event is None else event.is_set


class Cancelled(Exception):
    """Somebody asked to stop."""


class NoReply(Exception):
    """There is no usable reply. Its text goes on from the name of the endpoint."""

    def __init__(self, kind: Literal["address", "unreachable", "too_long"], what: str) -> None:
        super().__init__(what)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Reply:
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
    """Sends JSON. Raises TimeoutError, Cancelled or NoReply; needs the extra `llm`.

    `seconds` is for all of it, from the name's address to the last byte. Redirections are
    replies like others: they are not followed.
    """
    return await within(_post(url, body, headers, seconds, most), seconds, unwanted)


async def _post(
    url: str, body: object, headers: Mapping[str, str], seconds: float, most: int
) -> Reply:
    import httpx

    plain: dict[str, Any] = {"Accept-Encoding": "identity", **headers}
    trusted = _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    try:
        asking = httpx.AsyncClient(verify=trusted, timeout=seconds, follow_redirects=False)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        # It reads the proxies of the environment here; a proxy's own password is not quoted.
        why = "SOCKS needs the package socksio" if isinstance(error, ImportError) else "not a proxy"
        raise NoReply("address", f"cannot be asked: *_PROXY of the environment: {why}") from None
    try:
        async with (
            asking as client,
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
    """The certificates that these variables name, or httpx's own. To read them takes longer than
    to ask a server nearby, and httpx would do so for every question."""
    import httpx

    return httpx.create_ssl_context()


async def within(work: Awaitable[T], seconds: float, unwanted: Unwanted = lambda: False) -> T:
    """Waits for `work`, but not longer than `seconds` and not once it is unwanted."""
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
