"""The published JSON Schemas of manifest.json and events.jsonl, made from the types.

`python -m treewright.tree.schema [DIRECTORY]` writes them; a test keeps the committed
files up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel import atomic
from treewright.tree.events import Event
from treewright.tree.model import FORMAT_VERSION, Manifest

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """File name -> schema."""
    return {
        "manifest.schema.json": _titled(Manifest, "manifest.json of a treewright tree run"),
        "events.schema.json": _titled(Event, "A line of events.jsonl of a treewright tree run"),
    }


def render(schema: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def main(directory: Path) -> None:
    atomic.make_directory(directory)
    for name, schema in schemas().items():
        atomic.write_bytes(directory / name, render(schema))


def _titled(kind: Any, title: str) -> dict[str, Any]:
    body = msgspec.json.schema(kind)
    described = f"{title}, format_version {FORMAT_VERSION}. See docs/manifest.md."
    return {"$schema": _DIALECT, "title": title, "description": described, **body}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("schema"))
