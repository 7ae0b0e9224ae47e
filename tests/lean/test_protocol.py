"""The protocol as it is written: requests on the wire, and that its guide names all of it."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from treewright.lean.session.protocol import (
    BUNDLED_ONLY,
    REQUESTS,
    Audit,
    Judge,
    Open,
    Ping,
    Reply,
    Tactic,
    decode_reply,
)

GUIDE = Path(__file__).parents[2] / "docs" / "lean-protocol.md"
RUNTIME = Path(__file__).parents[2] / "src" / "treewright" / "lean" / "hosts" / "wasm" / "runtime"
HOST = Path(__file__).parents[2] / "src" / "treewright" / "lean" / "hosts" / "native" / "host.lean"


def test_a_request_on_the_wire() -> None:
    request = Tactic(state=3, text="rfl", id=7, max_ms=500)
    assert msgspec.json.decode(msgspec.json.encode(request)) == {
        "op": "tactic", "id": 7, "max_ms": 500, "state": 3, "text": "rfl",
    }  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(Ping(id=1))) == {"op": "ping", "id": 1}


def test_a_reply_has_the_fields_of_its_request() -> None:
    line = b'{"id": 1, "ok": true, "env": 4, "state": 5, "axioms": ["a"]}'
    assert decode_reply(Tactic(state=3, text="rfl"), line).state == 5
    assert decode_reply(Open(text=""), line).env == 4
    assert decode_reply(Audit(env=4, name="a"), line).axioms == ("a",)
    refused = decode_reply(Open(text=""), b'{"id": 1, "ok": false, "kind": "request"}')
    assert (refused.env, refused.kind) == (None, "request")


def test_a_judge_is_told_if_there_is_nothing_to_compare_with() -> None:
    raw = msgspec.Raw(b"[]")
    request = Judge(
        data=raw, allowed=[], targets=["a"], stated=None, separately=True,
        library=["Init"], original=raw, implemented=raw,
    )  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(request))["stated"] is None


def test_the_guide_has_every_operation_and_every_field() -> None:
    text = GUIDE.read_text("utf-8")
    operations = text.partition("## Operations")[2]
    for op, kind in REQUESTS.items():
        row = next(line for line in operations.splitlines() if line.startswith(f"| `{op}` |"))
        for field in kind.__struct_fields__:
            if field not in ("id", "max_ms"):
                assert f"`{field}`" in row, f"{op} {field}"
    for reply in (Reply, *Reply.__subclasses__()):
        for field in reply.__struct_fields__:
            assert f"`{field}`" in text, field


@pytest.mark.parametrize("op", REQUESTS)
def test_both_hosts_have_every_operation(op: str) -> None:
    scripts = "".join(path.read_text("utf-8") for path in RUNTIME.glob("*.js"))
    assert re.search(rf"\b(function )?{op}[(:]", scripts), op
    assert (f'| "{op}" =>' in HOST.read_text("utf-8")) == (op not in BUNDLED_ONLY)
