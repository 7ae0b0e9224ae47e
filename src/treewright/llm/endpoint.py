"""The address and the settings of a chat endpoint."""

from __future__ import annotations

import importlib.util
import os
import re
from typing import Annotated
from urllib.parse import quote, urlsplit

import msgspec

from treewright.kernel.errors import MissingExtra, TreewrightError, UsageError

Count = Annotated[int, msgspec.Meta(ge=1)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e300)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e300)]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_PASSWORD = re.compile(r"([a-z]+://[^/?#@:]*:)([^/?#]*)@", re.IGNORECASE)
_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")


class ChatError(TreewrightError):
    """The endpoint gave no answer. If `retryable`, a later request may get one."""

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An OpenAI-compatible chat endpoint; `base_url` ends before `/chat/completions`.

    `api_key_env` names the environment variable with its key; see `keys`. The three limits hold for
    all requests of this process to the same address with the same key; see `request_queue`.
    """

    base_url: Text
    model: Text
    api_key_env: str | None = None
    temperature: Amount = 0.2
    max_tokens: Count = 4096
    timeout_seconds: Seconds = 600.0
    max_concurrent: Count | None = None
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    usd_per_million_prompt_tokens: Amount | None = None
    usd_per_million_completion_tokens: Amount | None = None


def address(endpoint: Endpoint) -> str:
    """Return the address for requests, with the password from its variable.

    Raises:
        ChatError: The variable is not set.
    """
    url = endpoint.base_url.rstrip("/") + "/chat/completions"
    found = _PASSWORD.match(url)
    name = password_variable(url)
    if found is None or name is None:
        return url
    value = os.environ.get(name)
    if value is None:
        raise ChatError("llm_denied", f"{name} is not set, which its address names")
    return f"{found[1]}{quote(value, safe='')}{url[found.end(2) :]}"


def password_variable(url: str) -> str | None:
    """Return the variable that stands for the password in an address."""
    found = _PASSWORD.match(url)
    return found[2][1:] if found is not None and found[2].startswith("$") else None


def require_no_password(url: str) -> None:
    """Raise a UsageError if an address contains a password: the run records its addresses."""
    found = _PASSWORD.match(url)
    if found is not None and not _VARIABLE.fullmatch(found[2]):
        raise UsageError(
            "the address of a chat endpoint has a password in it, which would be recorded; export "
            "it as a variable and write the variable's name there: https://user:$NAME@host"
        )


def describe(endpoint: Endpoint) -> str:
    """Return the endpoint for people, without the password in its address."""
    scheme, separator, rest = endpoint.base_url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{endpoint.model} at {scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"


def origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port; None for an address that two parsers could read differently."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    default = _DEFAULT_PORTS.get(parts.scheme)
    host = parts.netloc.lower().removesuffix(f":{port}")
    if default is None or not url.isascii() or not url.isprintable() or not _HOST.fullmatch(host):
        return None
    return parts.scheme, host, default if port is None else port


def installed() -> bool:
    """Return whether the extra `llm` is installed."""
    return importlib.util.find_spec("httpx") is not None


def check_installed() -> None:
    """Raise MissingExtra if the extra `llm` is not installed."""
    if not installed():
        raise MissingExtra("talking to a chat endpoint", "llm")
