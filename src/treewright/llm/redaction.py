"""Removing secrets from texts.

A key can appear in a text: an endpoint quotes it in an error, a command-line agent prints its
environment. Before a text is kept, the value of every environment variable that looks like a secret
is replaced in it. A text that is used, such as an answer, loses only the keys of the request: the
value of another variable can be an ordinary word (`PRIMARY_KEY=config_id`).
"""

from __future__ import annotations

import os
import re

REDACTED = "[redacted]"
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SHORTEST_SECRET = 8
"""Shorter values (`1`, `true`, `none`) occur in ordinary text."""


def is_secret(name: str) -> bool:
    """Return whether an environment variable of that name looks like one that holds a secret."""
    return _SECRET_NAME.search(name) is not None


def redact(text: str, *names: str | None) -> str:
    """Return a text that may be kept. `names` are variables known to hold a secret."""
    values = {os.environ.get(name, "").strip() for name in names if name}
    values.update(
        value.strip()
        for name, value in os.environ.items()
        if is_secret(name) and len(value.strip()) >= _SHORTEST_SECRET
    )
    for secret in sorted(values - {""}, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text


def without_keys(text: str, *names: str) -> str:
    """Return a text that will be used, without the secrets in the named variables."""
    for name in names:
        key = os.environ.get(name, "").strip()
        text = text.replace(key, REDACTED) if len(key) >= _SHORTEST_SECRET else text
    return text


def without_api_keys(text: str) -> str:
    """Return the reply of a command-line agent without the values of all `..._API_KEY` variables.

    Treewright does not know which of them the agent uses.
    """
    return without_keys(text, *(name for name in os.environ if name.upper().endswith("API_KEY")))
