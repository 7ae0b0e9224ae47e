"""What can be said about a chat endpoint without asking it: its key, its name, its library."""

from __future__ import annotations

import importlib.util
import os

from treewright.kernel.errors import MissingExtra
from treewright.tree.config import EndpointConfig


class ChatError(Exception):
    """The endpoint gave no answer. `retryable`: it might, another time."""

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable


def check_installed() -> None:
    if importlib.util.find_spec("httpx") is None:
        raise MissingExtra("talking to a chat endpoint", "llm")


def api_key(endpoint: EndpointConfig) -> str | None:
    """The key of now; a variable that is named but not set is an error, not an empty key."""
    if endpoint.api_key_env is None:
        return None
    key = os.environ.get(endpoint.api_key_env, "").strip()
    if not key:
        raise ChatError(
            "llm_no_key",
            f"{describe(endpoint)} needs a key: the environment variable "
            f"{endpoint.api_key_env} is not set",
        )
    if not (key.isascii() and key.isprintable()):
        # Checked here, because the libraries below would quote the key in their complaint.
        raise ChatError(
            "llm_no_key", f"the key in {endpoint.api_key_env} has characters that no key has"
        )
    return key


def describe(endpoint: EndpointConfig) -> str:
    """The endpoint for people, without a password that its address may contain."""
    scheme, separator, rest = endpoint.base_url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{endpoint.model} at {scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"
