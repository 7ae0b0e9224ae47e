"""Which key goes to which endpoint: one rule for every engine.

1. The endpoint's own setting names the variable: `api_key_env`, `--llm-key-env`.
2. Else `TREEWRIGHT_LLM_KEYS` names it for the endpoint's address: entries such as
   `https://llm.example=MY_KEY`, separated by spaces. Scheme, host and port of the entry have to be
   the same, and its path has to be the beginning of the endpoint's; the longest entry counts.
3. Else `OPENAI_API_KEY` is for `https://api.openai.com`.
4. Else no key is sent.

Keys are read from the environment for each call and kept nowhere.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from treewright.llm.endpoint import ChatError, Endpoint, describe, origin, password_variable

KEYS_VARIABLE = "TREEWRIGHT_LLM_KEYS"
_PUBLIC_ADDRESS = "https://api.openai.com"
_PUBLIC_VARIABLE = "OPENAI_API_KEY"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USUAL_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class KeyVariable:
    """An environment variable with a key. It is an error if a required one is not set."""

    name: str
    required: bool


def variable_for(endpoint: Endpoint) -> KeyVariable | None:
    """Return the variable with the endpoint's key; None if no key is sent to the endpoint."""
    if endpoint.api_key_env is not None:
        return KeyVariable(endpoint.api_key_env, required=True)
    fitting = [entry for entry in _entries() if _covers(entry[0], endpoint.base_url)]
    if fitting:
        return KeyVariable(max(fitting, key=lambda entry: len(_path(entry[0])))[1], required=True)
    if _covers(_PUBLIC_ADDRESS, endpoint.base_url):
        return KeyVariable(_PUBLIC_VARIABLE, required=False)
    return None


def key_for(endpoint: Endpoint) -> str | None:
    """Return the endpoint's key; None if no key is sent.

    Raises:
        ChatError: A required variable is not set, or its value cannot be a key.
    """
    variable = variable_for(endpoint)
    if variable is None:
        return None
    key = os.environ.get(variable.name, "").strip()
    if not key:
        if not variable.required:
            return None
        raise ChatError(
            "llm_no_key",
            f"{describe(endpoint)} needs a key: {not_set(variable.name)}",
        )
    if not (key.isascii() and key.isprintable()):
        # Checked here, because the HTTP libraries would quote the key in their message.
        raise ChatError("llm_no_key", f"the key in {variable.name} has characters that no key has")
    return key


def not_set(name: str) -> str:
    """Return the message about a variable without a value.

    A name that does not look like one is not quoted: the user may have given the key itself.
    """
    if _USUAL_NAME.fullmatch(name):
        return f"the environment variable {name} is not set"
    return (
        "no environment variable of the name that was given holds it "
        "(the name is not shown, in case that it is the key itself)"
    )


def name_for(endpoint: Endpoint) -> str | None:
    """Return the name of the variable with the endpoint's key."""
    variable = variable_for(endpoint)
    return variable.name if variable else None


def secrets_for(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the variables with the endpoint's secrets: its key, a password in its address."""
    found = name_for(endpoint), password_variable(endpoint.base_url)
    return tuple(name for name in found if name is not None)


def describe_key(endpoint: Endpoint) -> str:
    """Return, for people, which key the endpoint would be asked with now."""
    key = key_for(endpoint)
    return f"with the key in {name_for(endpoint)}" if key else "without a key"


def listed_variables() -> frozenset[str]:
    """Return the variables that `TREEWRIGHT_LLM_KEYS` names."""
    return frozenset(name for _, name in _entries())


def _entries() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for entry in os.environ.get(KEYS_VARIABLE, "").split():
        address, equals, name = entry.rpartition("=")
        if not equals or origin(address) is None or not _NAME.fullmatch(name):
            # The entry is not quoted: the user may have put the key itself there.
            raise ChatError(
                "llm_no_key",
                f"entry {len(found) + 1} of {KEYS_VARIABLE} is not of the form "
                "`https://host=NAME_OF_A_VARIABLE`",
            )
        found.append((address, name))
    return found


def _covers(address: str, url: str) -> bool:
    """Return whether a key for `address` may be sent to `url`."""
    if origin(url) is None or origin(address) != origin(url):
        return False
    wanted, path = _path(address), _path(url)
    return (path == wanted or path.startswith(f"{wanted}/")) and ".." not in path.split("/")


def _path(url: str) -> str:
    return urlsplit(url).path.rstrip("/")
