"""The pages and their files, held in memory: a request can name these and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from treewright.dashboard import bundle

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


_SHELL = "page.html"
_TITLES = {
    "home": "Treewright",
    "tree": "Tree run · Treewright",
    "proof": "Proof run · Treewright",
    "experiment": "Experiment · Treewright",
    "bank": "Orchestrator · Treewright",
    "compare": "Comparison · Treewright",
}
"""The pages: each is the shell with a title and the script of its name, with all it imports."""


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    type: str
    etag: str


@cache
def all_assets() -> dict[str, Asset]:
    """By file name."""
    found = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _TYPES}
    modules = {name: body.decode() for name, body in found.items() if name.endswith(".js")}
    files = {name: body for name, body in found.items() if name not in modules}
    shell = files.pop(_SHELL).decode()
    for page, title in _TITLES.items():
        text = shell.replace("{title}", title).replace("{script}", page)
        files[f"{page}.html"] = text.encode()
        files[f"{page}.js"] = bundle.script(f"{page}.js", modules).encode()
    return {name: _asset(name, body) for name, body in sorted(files.items())}


def _asset(name: str, body: bytes) -> Asset:
    etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    return Asset(body, _TYPES[Path(name).suffix], etag)
