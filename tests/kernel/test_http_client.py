"""Replies without an end, drop by drop, elsewhere, or none: a real server that misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import ssl
import threading
import time
from collections.abc import Callable, Iterator

import certifi
import pytest

from treewright.kernel import http_client
from treewright.kernel.http_client import Cancelled, NoReply, Reply
from treewright.kernel.text import jsontext

Write = Callable[[http.server.BaseHTTPRequestHandler, threading.Event], None]
SOON = 200.0
"""Far shorter than these servers take, far longer than a busy machine needs."""


@contextlib.contextmanager
def serving(write: Write) -> Iterator[str]:
    over = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with contextlib.suppress(OSError):
                write(self, over)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def asked(url: str, **options: object) -> Reply:
    settings: dict = {"headers": {}, "seconds": 60.0} | options
    return asyncio.run(http_client.post(url, {}, **settings))


def without_end(handler: http.server.BaseHTTPRequestHandler, over: threading.Event) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.is_set():
        handler.wfile.write(b"x" * 65536)


def drop_by_drop(handler: http.server.BaseHTTPRequestHandler, over: threading.Event) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.wait(0.05):
        handler.wfile.write(b"x")


def header_by_header(handler: http.server.BaseHTTPRequestHandler, over: threading.Event) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not over.is_set():
        handler.wfile.write(b"X-Long: " + b"y" * 4096 + b"\r\n")


def not_yet(handler: http.server.BaseHTTPRequestHandler, over: threading.Event) -> None:
    while not over.wait(0.01):
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def elsewhere(handler: http.server.BaseHTTPRequestHandler, over: threading.Event) -> None:
    handler.send_response(302)
    handler.send_header("Location", handler.path)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def test_a_reply_without_an_end_is_cut_at_its_size() -> None:
    with serving(without_end) as url, pytest.raises(NoReply, match="more than 1,000,000 bytes"):
        asked(url, most=1_000_000)


@pytest.mark.parametrize("write", [drop_by_drop, not_yet])
def test_the_deadline_is_for_the_whole_reply(write: Write) -> None:
    begun = time.monotonic()
    with serving(write) as url, pytest.raises(TimeoutError):
        asked(url, seconds=0.5)
    assert time.monotonic() - begun < SOON


def test_an_unwanted_reply_is_not_waited_for() -> None:
    begun = time.monotonic()
    with serving(drop_by_drop) as url, pytest.raises(Cancelled):
        asked(url, unwanted=lambda: True)
    assert time.monotonic() - begun < SOON


def test_headers_without_an_end_are_no_reply() -> None:
    with serving(header_by_header) as url, pytest.raises(NoReply, match="cannot be reached"):
        asked(url)


def test_redirections_are_not_followed() -> None:
    with serving(elsewhere) as url:
        assert asked(url).status == 302
        assert not asked(url).ok


def test_wrong_addresses() -> None:
    for url, kind in [("ftp://x", "address"), ("http://127.0.0.1:9", "unreachable")]:
        with pytest.raises(NoReply) as caught:
            asked(url)
        assert caught.value.kind == kind


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "odd://me:word@127.0.0.1:9", "::::"])
def test_a_proxy_that_cannot_be_used_is_no_reply(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """Neither a traceback nor a way round it."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    with serving(elsewhere) as url, pytest.raises(NoReply) as caught:
        asked(url)
    assert caught.value.kind == "address"
    assert "PROXY" in str(caught.value)
    assert "word" not in str(caught.value)


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"a":' * 200_000, b'"\xff"', b"1 2"])
def test_json_of_any_shape_is_an_error_of_one_kind(text: bytes) -> None:
    with pytest.raises(ValueError, match="JSON"):
        jsontext.decode(text)
    with pytest.raises(ValueError, match="more than 3 bytes"):
        jsontext.decode(b"[1, 2]", most=3)


def at_once(handler: http.server.BaseHTTPRequestHandler, over: threading.Event) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")


def test_certificates_are_read_once_and_not_for_every_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings: list[object] = []
    real = ssl.SSLContext.load_verify_locations

    def counted(self: ssl.SSLContext, *args: object, **named: object) -> None:
        readings.append(args or named)
        real(self, *args, **named)  # type: ignore[arg-type]

    with serving(at_once) as url:
        asked(url)
        monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
        assert asked(url).ok
        assert readings == []
        monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
        assert asked(url).ok
        assert len(readings) == 1
