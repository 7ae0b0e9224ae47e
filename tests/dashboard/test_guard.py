"""Access control, with a real server and real requests."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx
import pytest

from tests.dashboard.serving import Server, served
from treewright.dashboard.guard import CONTENT_SECURITY_POLICY, Access, host_name

EVERY_KIND = ["/", "/static/style.css", "/api/runs", "/api/health", "/nothing", "/tree/0/run"]


def raw(server: Server, request: str) -> str:
    """Return the answer to exactly these bytes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(request.encode())
        data = b""
        while chunk := connection.recv(65536):
            data += chunk
    return data.decode("latin-1")


@pytest.mark.parametrize("path", EVERY_KIND)
def test_every_answer_carries_the_policy(server: Server, path: str) -> None:
    headers = server.get(path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "MOVE"])
@pytest.mark.parametrize("path", ["/", "/api/runs"])
def test_every_writing_method_is_refused(server: Server, method: str, path: str) -> None:
    answer = httpx.request(method, server.base + path, timeout=60)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_is_answered(server: Server) -> None:
    answer = httpx.head(server.base + "/api/runs", timeout=60)
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", ""),
        *("127.0.0.1:{0}.evil.com", "127.0.0.1:evil.com", "localhost:{0}@evil.com", "[::1].evil"),
        *("evil.com@localhost", "localhost/evil", "[::1", "[::1]{0}", "localhost:{0}:1", "::1"),
        *(
            "localhost,evil.com",
            "localhost:123456",
            "localhost..",
            "[::1%25eth0]",
            "localhost evil",
        ),
    ],
)
def test_another_host_name_is_refused(server: Server, host: str) -> None:
    host = host.format(server.port)
    answer = raw(server, f"GET /api/runs HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    assert answer.startswith(("HTTP/1.1 421", "HTTP/1.1 400"))
    assert "roots" not in answer


@pytest.mark.parametrize(
    "host", ["localhost:{0}", "127.0.0.1:{0}", "[::1]:{0}", "LOCALHOST", "localhost.:{0}"]
)
def test_the_servers_own_names_are_answered(server: Server, host: str) -> None:
    host = host.format(server.port)
    answer = raw(server, f"GET /api/runs HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    assert answer.startswith("HTTP/1.1 200"), answer[:200]


def test_two_host_headers_are_refused(server: Server) -> None:
    hosts = "Host: localhost\r\nHost: evil.example\r\n"
    answer = raw(server, f"GET /api/runs HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n")
    assert "200 OK" not in answer


def test_requests_of_other_sites_are_refused(server: Server) -> None:
    other = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert server.get("/api/runs", headers=other).status_code == 403
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert server.get("/", headers=followed).status_code == 200, "a link may lead here"
    for origin in ("https://evil.example", "null", f"{server.base}.evil.example", "file://"):
        refused = server.get("/api/runs", headers={"Origin": origin})
        assert refused.status_code == 403, origin
        assert "access-control-allow-origin" not in refused.headers
    assert server.get("/api/runs", headers={"Origin": server.base}).status_code == 200


def test_the_target_of_a_request_does_not_name_another_host(server: Server) -> None:
    asked = "GET http://evil.example/api/runs HTTP/1.1"
    answer = raw(server, f"{asked}\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert answer.startswith(("HTTP/1.1 421", "HTTP/1.1 400"))
    answer = raw(server, f"{asked}\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert "roots" not in answer


def test_an_open_server_asks_for_its_token(tmp_path: Path) -> None:
    with served("--runs", tmp_path, "--host", "0.0.0.0") as running:
        token = running.url.partition("?token=")[2]
        assert len(token) >= 24, "a generated token is printed with the address"
        base = f"http://127.0.0.1:{running.port}"
        for path in EVERY_KIND:
            assert httpx.get(base + path, timeout=60).status_code == 401, path
        wrong = {"X-Treewright-Token": token[:-1] + ("a" if token[-1] != "a" else "b")}
        assert httpx.get(f"{base}/api/runs", headers=wrong, timeout=60).status_code == 401
        assert httpx.get(f"{base}/api/runs?token=", timeout=60).status_code == 401
        right = {"X-Treewright-Token": token}
        assert httpx.get(f"{base}/api/runs", headers=right, timeout=60).status_code == 200
        with httpx.Client(base_url=base, timeout=60) as browser:
            welcome = browser.get(f"/?x=1&token={token}")
            assert (welcome.status_code, welcome.headers["location"]) == (303, "/?x=1")
            cookie = welcome.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "samesite=strict" in cookie.lower()
            assert token not in cookie, "cookies reach other ports of this host"
            assert browser.get("/api/runs").status_code == 200


def test_a_given_token_is_asked_for_on_loopback_too(tmp_path: Path) -> None:
    with served("--runs", tmp_path, "--token", "only for me") as running:
        assert running.get("/api/runs").status_code == 401
        given = {"X-Treewright-Token": "only for me"}
        assert running.get("/api/runs", headers=given).status_code == 200


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("a.b:80", "a.b"),
        ("[::1]:80", "::1"),
        ("LocalHost", "localhost"),
        ("a.", "a"),
        ("", ""),
        ("a:80.b", ""),
        ("a@b", ""),
        ("[::1]b", ""),
        ("a b", ""),
        ("a:", "a"),
    ],
)
def test_the_name_in_a_host_header(header: str, name: str) -> None:
    assert host_name(header) == name


def test_addresses_are_allowed_only_on_an_open_server() -> None:
    assert not Access(frozenset({"localhost"})).allows_host("192.168.1.5")
    assert Access(frozenset({"localhost"}), any_address=True).allows_host("192.168.1.5:80")
    assert not Access(frozenset({"localhost"}), any_address=True).allows_host("evil.example")
