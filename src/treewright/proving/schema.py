"""The published JSON Schemas of a proof run's files, made from the types.

`python -m treewright.proving.schema [DIRECTORY]` writes them. A test checks that the committed
files are up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.storage import json_schemas
from treewright.proving.records import TraceLine
from treewright.proving.run import RunResult
from treewright.proving.settings import FORMAT_VERSION, RunRecord
from treewright.search.andor.policies import BUILT_IN, Policy


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schemas by file name."""
    return {
        "proof-run.schema.json": _titled(RunRecord, "run.json of a treewright proof run"),
        "proof-trace.schema.json": _titled(TraceLine, "A line of trace.jsonl of a proof run"),
        "proof-result.schema.json": _titled(RunResult, "result.json of a treewright proof run"),
    }


def _titled(kind: Any, title: str) -> dict[str, Any]:
    note = f"format_version {FORMAT_VERSION}. See docs/proof-runs.md."
    return json_schemas.titled(kind, title, note, _policies)


def _policies(kind: type) -> dict[str, Any]:
    """Return the schema of a policy: a built-in one, or one of a plug-in."""
    if kind is not Policy:
        raise TypeError(f"no schema for {kind.__name__}")
    _, components = msgspec.json.schema_components(BUILT_IN)
    of_plugin = {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]}
    return {"anyOf": [*components.values(), of_plugin]}


if __name__ == "__main__":
    json_schemas.write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("schema"), schemas())
