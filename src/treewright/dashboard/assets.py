"""The pages and their files, held in memory: a request can name these and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    type: str
    etag: str


@cache
def all_assets() -> dict[str, Asset]:
    """By file name."""
    found = {}
    for path in sorted(STATIC.iterdir()):
        if path.suffix in _TYPES:
            body = path.read_bytes()
            etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
            found[path.name] = Asset(body, _TYPES[path.suffix], etag)
    return found
