"""What is written about an agent's work, and the secrets that are taken out of it.

A key can come back: an endpoint quotes it in an error, a command-line agent prints its
environment. So every value of a secret-looking environment variable is replaced
before a text is kept, whoever wrote it. Only then: such a value can be an ordinary word
(`PRIMARY_KEY=config_id`), and a text that is used must say what its author wrote.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from treewright.kernel import untrusted
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


def without_key(text: str, name: str | None) -> str:
    """A text that will be used: of all secrets only the one it was asked with is taken out."""
    key = os.environ.get(name, "").strip() if name else ""
    return text.replace(key, REDACTED) if len(key) >= _SHORTEST_SECRET else text


def without_api_keys(text: str) -> str:
    """The same for a command-line agent, whose key can be in any `..._API_KEY`."""
    for name in os.environ:
        if name.upper().endswith("API_KEY"):
            text = without_key(text, name)
    return text


def write(path: Path, text: str, *names: str | None) -> None:
    """Writes a log without secrets. `names` are variables known to hold one."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with untrusted.create(path) as file:
            file.write(redact(text, *names).encode("utf-8", "surrogateescape"))


def write_for_use(path: Path, text: str) -> None:
    """Writes what a child process is to read, as it is. `scrub` the file afterwards."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with untrusted.create(path) as file:
            file.write(text.encode("utf-8", "surrogateescape"))


def scrub(path: Path, *names: str | None) -> str:
    """Takes secrets out of a file that a child process used; returns what it said before."""
    try:
        text = untrusted.read(path, untrusted.LARGEST_TEXT).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except untrusted.NotPlain:
        write(path, "[treewright: this was no plain file any more, and was removed]\n")
        return ""
    if redact(text, *names) != text:
        write(path, text, *names)
    return text
