"""JSON Schemas of file formats, made from the types that read and write the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.storage import atomic

Schemas = Mapping[str, dict[str, Any]]
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def titled(
    kind: Any, title: str, note: str, others: Callable[[type], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the schema of a type with a title; `others` gives the schemas of custom types."""
    body = msgspec.json.schema(kind, schema_hook=others)
    return {"$schema": _DIALECT, "title": title, "description": f"{title}, {note}", **body}


def render(schema: dict[str, Any]) -> bytes:
    """Return a schema as formatted JSON."""
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def write(directory: Path, schemas: Schemas) -> None:
    """Write a file for each schema, under its name."""
    atomic.make_directory(directory)
    for name, schema in schemas.items():
        atomic.write_bytes(directory / name, render(schema))
