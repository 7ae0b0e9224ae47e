"""The published JSON Schemas of a proof run's files, made from the types.

`python -m treewright.mcts.schema [DIRECTORY]` writes them; a test keeps the committed files up to
date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel import atomic
from treewright.mcts.records import TraceLine
from treewright.mcts.run import RunResult
from treewright.mcts.settings import FORMAT_VERSION, RunRecord

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """File name -> schema."""
    return {
        "proof-run.schema.json": _titled(RunRecord, "run.json of a treewright proof run"),
        "proof-trace.schema.json": _titled(TraceLine, "A line of trace.jsonl of a proof run"),
        "proof-result.schema.json": _titled(RunResult, "result.json of a treewright proof run"),
    }


def render(schema: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def main(directory: Path) -> None:
    atomic.make_directory(directory)
    for name, schema in schemas().items():
        atomic.write_bytes(directory / name, render(schema))


def _titled(kind: Any, title: str) -> dict[str, Any]:
    body = msgspec.json.schema(kind)
    described = f"{title}, format_version {FORMAT_VERSION}. See docs/proof-runs.md."
    return {"$schema": _DIALECT, "title": title, "description": described, **body}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("schema"))
