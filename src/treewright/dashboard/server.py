"""Start the dashboard's HTTP server on a socket, with a token where one is needed."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import MissingExtra, UsageError

DEFAULT_PORT = 8321
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_CONNECTIONS = 500
_BACKLOG = 128


@dataclass(frozen=True, slots=True)
class Address:
    """The address to listen on, and the token. A loopback address needs no token."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str | None = None

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def with_token(self) -> Address:
        """Return the address with a new token, if other machines can reach it and it has none."""
        if self.token is not None or self.is_loopback:
            return self
        return Address(self.host, self.port, secrets.token_urlsafe(24))


def serve(runs: Sequence[Path], address: Address, announce: Callable[[str], None]) -> None:
    """Serve until interrupted.

    Args:
        runs: Projects or run directories.
        announce: Called with the address to open.
    """
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise MissingExtra("the dashboard", "dashboard") from None
    from treewright.dashboard.app import make_app
    from treewright.dashboard.guard import Access
    from treewright.dashboard.roots import Roots

    if address.token is not None and not address.token.strip():
        raise UsageError("the token is empty; give one that cannot be guessed, or none")
    address = address.with_token()
    roots = Roots(runs)
    hosts = _LOOPBACK_NAMES if address.is_loopback else {address.host, socket.gethostname()}
    access = Access(
        frozenset(name.lower() for name in hosts) | _LOOPBACK_NAMES,
        any_address=not address.is_loopback,
        token=address.token,
    )
    with _listen(address) as listener:
        config = uvicorn.Config(
            make_app(roots, access),
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        announce(_url(address, listener.getsockname()[1]))
        uvicorn.Server(config).run(sockets=[listener])


def _listen(address: Address) -> socket.socket:
    try:
        family, kind, proto, _, endpoint = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, proto)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(endpoint)
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"cannot listen on {address.host} port {address.port}: {reason}; "
            "choose another with --port"
        ) from None
    return listener


def _url(address: Address, port: int) -> str:
    everywhere = address.host in ("0.0.0.0", "::", "")  # noqa: S104 (compared, not bound)
    host = socket.gethostname() if everywhere else address.host
    shown = f"[{host}]" if ":" in host else host
    query = f"?token={address.token}" if address.token else ""
    return f"http://{shown}:{port}/{query}"
