"""The protocol as it is written: requests on the wire, and that its guide names all of it."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from treewright.lean.session.protocol import BUNDLED_ONLY, REQUESTS, Reply, message

GUIDE = Path(__file__).parents[2] / "docs" / "lean-protocol.md"
RUNTIME = Path(__file__).parents[2] / "src" / "treewright" / "lean" / "hosts" / "wasm" / "runtime"
HOST = Path(__file__).parents[2] / "src" / "treewright" / "lean" / "hosts" / "native" / "host.lean"


def test_a_request_on_the_wire() -> None:
    sent = msgspec.json.encode(message("tactic", 7, 0.5, {"state": 3, "text": "rfl"}))
    assert msgspec.json.decode(sent) == {
        "op": "tactic", "id": 7, "max_ms": 500, "state": 3, "text": "rfl",
    }  # fmt: skip
    sent = msgspec.json.encode(message("ping", 1, None, {}))
    assert msgspec.json.decode(sent) == {"op": "ping", "id": 1}


def test_a_field_that_the_operation_lacks_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        message("tactic", 1, None, {"state": 1, "text": "rfl", "env": 2})


def test_a_judge_is_told_if_there_is_nothing_to_compare_with() -> None:
    raw = msgspec.Raw(b"[]")
    fields = {"data": raw, "allowed": [], "targets": ["a"], "separately": True}
    fields |= {"library": ["Init"], "original": raw, "implemented": raw}
    sent = msgspec.json.encode(message("judge", 1, None, {**fields, "stated": None}))
    assert msgspec.json.decode(sent)["stated"] is None


def test_the_guide_has_every_operation_and_every_field() -> None:
    text = GUIDE.read_text("utf-8")
    operations = text.partition("## Operations")[2]
    for op, kind in REQUESTS.items():
        row = next(line for line in operations.splitlines() if line.startswith(f"| `{op}` |"))
        for field in kind.__struct_fields__:
            if field not in ("id", "max_ms"):
                assert f"`{field}`" in row, f"{op} {field}"
    for field in Reply.__struct_fields__:
        assert f"`{field}`" in text, field


@pytest.mark.parametrize("op", REQUESTS)
def test_both_hosts_have_every_operation(op: str) -> None:
    scripts = "".join(path.read_text("utf-8") for path in RUNTIME.glob("*.js"))
    assert re.search(rf"\b(function )?{op}[(:]", scripts), op
    assert (f'| "{op}" =>' in HOST.read_text("utf-8")) == (op not in BUNDLED_ONLY)
