"""Logs of agents' work, without secrets."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.storage import untrusted
from treewright.kernel.storage.atomic import storage_errors
from treewright.llm.redaction import redact


def write(path: Path, text: str, *names: str | None) -> None:
    """Write a log without secrets. `names` are environment variables that hold secrets."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with untrusted.create(path) as file:
            file.write(redact(text, *names).encode("utf-8", "surrogateescape"))


def write_for_use(path: Path, text: str) -> None:
    """Write a file with its secrets, for a child process. Call `scrub` afterwards."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with untrusted.create(path) as file:
            file.write(text.encode("utf-8", "surrogateescape"))


def scrub(path: Path, *names: str | None) -> str:
    """Remove secrets from a file that a child process used. Return the text with its secrets."""
    try:
        text = untrusted.read(path, untrusted.LARGEST_TEXT).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except untrusted.NotPlain:
        write(path, "[treewright: this was not a plain file any more, and was removed]\n")
        return ""
    if redact(text, *names) != text:
        write(path, text, *names)
    return text
