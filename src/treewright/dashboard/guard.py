"""Access control of the dashboard. Every request passes through the guard first.

Only GET and HEAD are allowed. The Host header must name this server, so that a page of another site
cannot read data through DNS rebinding. Requests from pages of other sites are refused. If a token
is set, every request needs it. Every answer has a content security policy that allows only our
files.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "treewright_dashboard"
TOKEN_HEADER = b"x-treewright-token"
_METHODS = ("GET", "HEAD")

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


@dataclass(frozen=True, slots=True)
class Access:
    """The rules for requests.

    `hosts` are the allowed names in the Host header. With `any_address`, IP addresses are allowed
    too. If `token` is None, no token is needed.
    """

    hosts: frozenset[str]
    any_address: bool = False
    token: str | None = None

    def allows_host(self, header: str) -> bool:
        """Return whether a Host header is allowed. DNS rebinding cannot use an IP address."""
        name = host_name(header)
        return bool(name) and (name in self.hosts or (self.any_address and _is_address(name)))

    @property
    def cookie(self) -> str:
        """Return the value of the cookie. Every port of a host gets it, so it is not the token."""
        assert self.token is not None
        return hmac.new(self.token.encode(), b"treewright dashboard", hashlib.sha256).hexdigest()


class Guard:
    """The ASGI middleware that refuses or passes on each request."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
            await send(message)

        refusal = self._refuse(scope)
        await (refusal or self._app)(scope, receive, send_guarded)

    def _refuse(self, scope: Scope) -> Response | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if scope["method"] not in _METHODS:
            allow = {"Allow": ", ".join(_METHODS)}
            return PlainTextResponse("only GET and HEAD\n", 405, headers=allow)
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not self._access.allows_host(hosts[0].decode("latin-1")):
            return PlainTextResponse("this server does not have that name\n", 421)
        site = headers.get(b"sec-fetch-site", b"none")
        navigation = headers.get(b"sec-fetch-mode") == b"navigate"
        if site not in (b"none", b"same-origin") and not navigation:
            return PlainTextResponse("requests from other sites are refused\n", 403)
        # Browsers without the headers above still send the origin of the page.
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        host = hosts[0].decode("latin-1").lower()
        if any(_origin_host(origin).lower() != host for origin in origins):
            return PlainTextResponse("requests from other sites are refused\n", 403)
        if self._access.token is None:
            return None
        return self._check_token(scope, headers, self._access.token)

    def _check_token(
        self, scope: Scope, headers: dict[bytes, bytes], token: str
    ) -> Response | None:
        if _same(headers.get(TOKEN_HEADER, b""), token):
            return None
        if _same(_cookie(headers.get(b"cookie", b"")), self._access.cookie):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if len(given) == 1 and _same(given[0].encode(), token):
            return self._set_cookie(scope["path"], [pair for pair in query if pair[0] != "token"])
        return PlainTextResponse("this dashboard needs its token: open /?token=...\n", 401)

    def _set_cookie(self, path: str, query: Iterable[tuple[str, str]]) -> Response:
        """Set the cookie, and redirect to the address without the token."""
        rest = urlencode(list(query))
        target = "/" + path.lstrip("/") + (f"?{rest}" if rest else "")
        response = RedirectResponse(target, 303)
        response.set_cookie(COOKIE, self._access.cookie, httponly=True, samesite="strict")
        return response


_AUTHORITY = re.compile(
    r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?)(?::[0-9]{0,5})?"
)


def host_name(header: str) -> str:
    """Return the name in a Host header, without the port; empty if the header is malformed."""
    found = _AUTHORITY.fullmatch(header.strip(" \t").lower())
    return (found["six"] or found["name"]) if found else ""


def _origin_host(origin: str) -> str:
    """Return the host and port of an Origin header, or an empty text."""
    scheme, _, authority = origin.partition("://")
    return authority if scheme in ("http", "https") else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _cookie(header: bytes) -> bytes:
    try:
        found = SimpleCookie(header.decode("latin-1")).get(COOKIE)
    except CookieError:
        return b""
    return found.value.encode() if found else b""


def _same(given: bytes, wanted: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given, wanted.encode())
