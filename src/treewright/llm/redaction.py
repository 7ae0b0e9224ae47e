"""Taking secrets out of texts.

A key can come back: an endpoint quotes it in an error, a command-line agent prints its
environment. So every value of a secret-looking environment variable is replaced
before a text is kept, whoever wrote it. Only then: such a value can be an ordinary word
(`PRIMARY_KEY=config_id`), and a text that is used must say what its author wrote.
"""

from __future__ import annotations

import os
import re

REDACTED = "[redacted]"
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SHORTEST_SECRET = 8
"""Shorter values (`1`, `true`, `none`) would tear holes into ordinary text."""


def is_secret(name: str) -> bool:
    """Whether an environment variable of that name looks like one that holds a secret."""
    return _SECRET_NAME.search(name) is not None


def redact(text: str, *names: str | None) -> str:
    """A text that is kept. `names` are variables known to hold a secret."""
    for secret in _secrets_of_environment(*names):
        text = text.replace(secret, REDACTED)
    return text


def without_keys(text: str, *names: str) -> str:
    """A text that will be used: of all secrets only those it was asked with are taken out."""
    for name in names:
        key = os.environ.get(name, "").strip()
        text = text.replace(key, REDACTED) if len(key) >= _SHORTEST_SECRET else text
    return text


def without_api_keys(text: str) -> str:
    """The same for a command-line agent, whose key can be in any `..._API_KEY`."""
    return without_keys(text, *(name for name in os.environ if name.upper().endswith("API_KEY")))


def _secrets_of_environment(*names: str | None) -> list[str]:
    """Values of the named variables and of those that look like secrets, longest first."""
    values = {os.environ.get(name, "").strip() for name in names if name}
    values.update(
        value.strip()
        for name, value in os.environ.items()
        if is_secret(name) and len(value.strip()) >= _SHORTEST_SECRET
    )
    return sorted(values - {""}, key=len, reverse=True)
