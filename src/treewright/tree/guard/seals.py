"""Seals on sweep results, which only the sweep itself can make.

A sweep with `sealed = true` reads a key from its stdin before it runs anything else, and ends its
results with a line made with that key. A process that the candidate's code started can write to the
same file, but cannot write that line.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.kernel.storage import untrusted

UNSEALED_RESULTS = "unsealed_results"
_MARK = b"#seal "


class Distrusted(TreewrightError):
    """The results of a command are not to be believed. `code` is the reason that is recorded."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def new_key() -> str:
    """Return a new random key for one sweep."""
    return secrets.token_hex(32)


def seal(data: bytes, key: str) -> bytes:
    """Return results with their seal, as a sweep writes them."""
    return data + _MARK + _digest(data, key) + b"\n"


def remove_seal(results: Path, inside: Path, key: str) -> None:
    """Check the seal of a results file and remove it.

    A missing file, and anything else than a plain file, is left for the reader of the results.

    Raises:
        Distrusted: The file has no seal, or a seal of other data or another key.
    """
    try:
        written = untrusted.read(results, untrusted.LARGEST_RESULTS, inside)
    except (FileNotFoundError, untrusted.NotPlain):
        return
    data, mark, found = written.rpartition(_MARK)
    if not mark or not hmac.compare_digest(found.strip(), _digest(data, key)):
        results.unlink()
        raise Distrusted(
            UNSEALED_RESULTS,
            "the results do not end with the seal that sealed = true asks of the sweep",
        )
    with untrusted.create(results) as file:
        file.write(data)


def _digest(data: bytes, key: str) -> bytes:
    return hmac.new(key.encode(), data, hashlib.sha256).hexdigest().encode()
