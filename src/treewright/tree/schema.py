"""The published JSON Schemas of manifest.json and events.jsonl, made from the types.

`python -m treewright.tree.schema [DIRECTORY]` writes them; a test keeps the committed
files up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from treewright.kernel.storage import json_schemas
from treewright.tree.records.events import Event
from treewright.tree.records.model import FORMAT_VERSION, Manifest


def schemas() -> dict[str, dict[str, Any]]:
    """File name -> schema."""
    return {
        "manifest.schema.json": _titled(Manifest, "manifest.json of a treewright tree run"),
        "events.schema.json": _titled(Event, "A line of events.jsonl of a treewright tree run"),
    }


def _titled(kind: Any, title: str) -> dict[str, Any]:
    return json_schemas.titled(
        kind, title, f"format_version {FORMAT_VERSION}. See docs/manifest.md."
    )


if __name__ == "__main__":
    json_schemas.write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("schema"), schemas())
