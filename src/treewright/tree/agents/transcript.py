"""What is written about an agent's work, and the secrets that are taken out of it.

A key can come back: an endpoint quotes it in an error, a command-line agent prints its
environment. So every value of a secret-looking environment variable is replaced
before a text is kept, whoever wrote it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from treewright.kernel.atomic import storage_errors

REDACTED = "[redacted]"
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SHORTEST_SECRET = 8
"""Shorter values (`1`, `true`, `none`) would tear holes into ordinary text."""


def secrets_of_environment(*names: str | None) -> list[str]:
    """Values of the named variables and of those that look like secrets, longest first."""
    values = {os.environ[name] for name in names if name and os.environ.get(name)}
    values.update(
        value
        for name, value in os.environ.items()
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET
    )
    return sorted(values, key=len, reverse=True)


def redact(text: str, *names: str | None) -> str:
    for secret in secrets_of_environment(*names):
        text = text.replace(secret, REDACTED)
    return text


def write(path: Path, text: str, *names: str | None) -> None:
    """Writes a log without secrets. `names` are variables known to hold one."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(redact(text, *names).encode("utf-8", "surrogateescape"))


def scrub(path: Path, *names: str | None) -> str:
    """Takes secrets out of a log that a child process wrote; returns the text."""
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    clean = redact(text, *names)
    if clean != text:
        write(path, clean)
    return clean
