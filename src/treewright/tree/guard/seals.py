"""Results that only the sweep itself can have written.

A sweep with `sealed = true` finds a key on its stdin, which it reads before it runs anything else,
and ends its results with a line made with that key. Processes that a candidate's code started can
write to the same file; without the key they cannot write that line.
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
    """What a sweep left is not the sweep's own. `code` is the reason that is recorded."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def new_key() -> str:
    return secrets.token_hex(32)


def sealed(data: bytes, key: str) -> bytes:
    """What a sweep writes for results `data`; docs/sweep-contract.md has it in five lines."""
    return data + _MARK + _seal(data, key) + b"\n"


def open_sealed(results: Path, inside: Path, key: str) -> None:
    """Leaves the results without their seal in the file; Distrusted if that is not theirs. What
    is no plain file is left for its reader to refuse."""
    try:
        written = untrusted.read(results, untrusted.LARGEST_RESULTS, inside)
    except (FileNotFoundError, untrusted.NotPlain):
        return
    data, mark, seal = written.rpartition(_MARK)
    if not mark or not hmac.compare_digest(seal.strip(), _seal(data, key)):
        results.unlink()
        raise Distrusted(
            UNSEALED_RESULTS,
            "the results do not end with the seal that sealed = true asks of the sweep",
        )
    with untrusted.create(results) as file:
        file.write(data)


def _seal(data: bytes, key: str) -> bytes:
    return hmac.new(key.encode(), data, hashlib.sha256).hexdigest().encode()
