"""The published schemas are those of the types, and a real run's files validate."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.proving.test_search import Phase, search, world
from treewright.kernel.storage.json_schemas import render
from treewright.proving import schema
from treewright.proving.run import create
from treewright.proving.settings import LeanRecord, Settings, StatementTarget
from treewright.proving.trace import TraceWriter

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", schema.schemas())
def test_committed_schemas_are_up_to_date(name: str) -> None:
    committed = (ROOT / "schema" / name).read_bytes()
    assert committed == render(schema.schemas()[name]), "run: make schema"


def test_files_of_a_run_validate(tmp_path: Path) -> None:
    published = {
        name: json.loads((ROOT / "schema" / name).read_text()) for name in schema.schemas()
    }
    target = StatementTarget("True")
    directory = tmp_path / "r"
    create(directory, target, Settings(), LeanRecord("wasm", "4", ""), None)
    jsonschema.validate(
        json.loads((directory / "run.json").read_text()), published["proof-run.schema.json"]
    )
    _, lines, _ = search([], world(), phase=Phase(simulations=10))
    writer = TraceWriter(directory / "trace.jsonl", 1, lambda: None)
    writer.append(lines)
    writer.close()
    for line in (directory / "trace.jsonl").read_text().splitlines():
        jsonschema.validate(json.loads(line), published["proof-trace.schema.json"])
    broken = json.loads(line)
    del broken["counters"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, published["proof-trace.schema.json"])
