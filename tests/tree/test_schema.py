"""The published schemas match the types, and real files validate against them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from tests.tree.runs import make_target, search
from treewright.kernel.storage.json_schemas import render
from treewright.tree import schema
from treewright.tree.records.events import Event
from treewright.tree.records.model import Manifest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", schema.schemas())
def test_committed_schemas_are_up_to_date(name: str) -> None:
    committed = (ROOT / "schema" / name).read_bytes()
    assert committed == render(schema.schemas()[name]), "run: python -m treewright.tree.schema"


@pytest.mark.parametrize("dry_run", [False, True], ids=["real", "dry"])
def test_manifests_of_real_runs_match_the_schema(tmp_path: Path, dry_run: bool) -> None:
    run_dir = search(
        make_target(tmp_path / "repo").path,
        dry_run=dry_run,
        ideas_per_node=3,
        max_depth=2,
        sweep_config_limit=8,
        confirm_configs=4,
    )
    published = {
        name: json.loads((ROOT / "schema" / name).read_text()) for name in schema.schemas()
    }
    manifest = json.loads((run_dir / "manifest.json").read_text())
    jsonschema.validate(manifest, published["manifest.schema.json"])
    validator = jsonschema.Draft202012Validator(published["events.schema.json"])
    lines = (run_dir / "events.jsonl").read_text().splitlines()
    for line in lines:
        validator.validate(json.loads(line))
    assert {json.loads(line)["type"] for line in lines} >= {"lease", "run_created", "decided"}


def test_a_wrong_manifest_does_not_match_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(schema.schemas()["manifest.schema.json"])
    assert not validator.is_valid({"tree_run_id": 3})


def test_the_guide_names_every_field() -> None:
    """docs/manifest.md describes each field of each record."""
    text = (ROOT / "docs" / "manifest.md").read_text()
    for struct in _structs():
        for field in msgspec.structs.fields(struct):
            assert f"`{field.encode_name}`" in text, f"{struct.__name__}.{field.encode_name}"


def _structs() -> list[type[msgspec.Struct]]:
    infos = [msgspec.inspect.type_info(Manifest), msgspec.inspect.type_info(Event)]
    found: dict[str, type[msgspec.Struct]] = {}
    while infos:
        info = infos.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls.__name__ in found:
                continue
            found[info.cls.__name__] = info.cls
            infos += [field.type for field in info.fields]
        for name in ("types", "item_type", "value_type"):
            inner = getattr(info, name, None)
            infos += list(inner) if isinstance(inner, tuple) else [inner] if inner else []
    return list(found.values())
