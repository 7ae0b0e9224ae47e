"""The server as a process: messages of every kind, many calls, several clients, its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.mcp_server import test_lean_tools, test_run_tools
from tests.mcp_server.agent import Agent, agent, descendants
from tests.signals import as_from_a_terminal
from tests.tree.runs import RUN_ID

pytestmark = pytest.mark.xdist_group("mcp")
_MEGABYTE = 1 << 20
HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "a test", "version": "1"}},
}  # fmt: skip


class Raw:
    """A server that a test writes to byte by byte."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, message: Any) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, number: int, name: str, **arguments: Any) -> Any:
        params = {"name": name, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        return self.receive()


@contextmanager
def raw(root: Path) -> Iterator[Raw]:
    with subprocess.Popen(
        [sys.executable, "-m", "treewright", "mcp", "--root", str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=as_from_a_terminal,
    ) as process:
        server = Raw(process)
        server.send(HELLO)
        assert server.receive()["result"]["serverInfo"]["name"] == "treewright"
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        try:
            yield server
        finally:
            process.kill()


def test_every_tool_has_schemas_and_a_description(served: Agent) -> None:
    from treewright.mcp_server.server import tools_of

    tools = served.tools()
    assert set(tools) == {tool.name for tool in tools_of(allow_steering=True)}
    for tool in tools.values():
        assert tool.description
        for schema in (tool.input_schema, tool.output_schema):
            assert schema["type"] == "object"
            jsonschema.Draft202012Validator.check_schema(schema)
    assert not tools["tree_steer"].annotations.read_only_hint
    assert tools["lean_check"].annotations.read_only_hint


def test_bad_input_of_every_tool_is_tried() -> None:
    from treewright.mcp_server.server import tools_of

    tried = {tool for tool, _, _ in (*test_lean_tools.BAD, *test_run_tools.BAD)}
    assert tried == {tool.name for tool in tools_of(allow_steering=True)}


def test_invalid_messages_do_not_stop_the_server(tmp_path: Path, home: object) -> None:
    from treewright.mcp_server import stdio

    with raw(tmp_path) as server:
        for line, code, request_id in (
            (b"{", -32700, None),
            (b"\xff\xfe\x00", -32700, None),
            (b"[" * 100_000, -32700, None),
            (b"[]", -32600, None),
            (b'{"jsonrpc": "2.0", "id": 7}', -32600, 7),
            (b'{"id": 8, "method": "ping"}', -32600, 8),
            (b'"' + b"x" * stdio.MAX_LINE_BYTES + b'"', -32600, None),
        ):
            server.send(line)
            reply = server.receive()
            assert (reply["error"]["code"], reply["id"]) == (code, request_id), line[:40]
        # Half of a surrogate pair is not valid text at any position.
        half = b'"\\ud800"'
        server.send(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":' + half + b"}}"
        )
        assert "error" in server.receive()
        server.send({"jsonrpc": "2.0", "id": 9, "method": "no/such/method"})
        assert server.receive()["error"]["code"] == -32601
        assert server.call(10, "no_such_tool")["error"]["code"] == -32602
        # Tools that need a flag are missing without it, under any spelling.
        assert server.call(11, "tree_steer", run=RUN_ID, action="stop")["error"]["code"] == -32602
        server.send({"jsonrpc": "2.0", "id": 12, "method": "tools/list"})
        names = [tool["name"] for tool in server.receive()["result"]["tools"]]
        assert "lean_check" in names
        assert not [name for name in names if "steer" in name]
        refused = server.call(13, "tree_runs", limit="many")
        assert refused["result"]["isError"]
        assert server.call(14, "tree_runs")["result"]["structuredContent"] == {
            "runs": [], "total": 0,
        }  # fmt: skip
        assert not (tmp_path / ".treewright").exists()
        checked = server.call(15, "lean_check", text="example : 1 = 1 := rfl")
        assert checked["result"]["structuredContent"]["ok"]
        lean = descendants(server.process.pid)
        assert lean
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(120) == 0
        assert not set(lean) & set(descendants(os.getpid())), "its Lean has ended with it"


def test_the_length_of_lines_is_bounded_for_any_chunks(tmp_path: Path) -> None:
    from treewright.mcp_server import stdio

    path = tmp_path / "lines"
    path.write_bytes(b"ab\n\n" + b"x" * 11 + b"\ncd\n" + b"y" * 200_000 + b"\nend")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert list(stdio.read_lines(descriptor, 10)) == [b"ab", None, b"cd", None, b"end"]
    finally:
        os.close(descriptor)


def test_a_thousand_calls_leak_no_resources(served: Agent) -> None:
    def turn() -> None:
        served.call("lean_try", statement="∀ n : Nat, n = n", tactics=["intro n", "rfl"])
        served.result("tree_runs", limit=1)
        served.result("lean_check", path="../nothing")
        served.result("tree_why", run=RUN_ID, item="n0001")

    for _ in range(25):
        turn()
    before = served.resident
    for _ in range(250):
        turn()
    assert served.resident - before < 50 * _MEGABYTE


def test_two_agents_and_several_calls_of_one_run_concurrently(served: Agent, shelf: Path) -> None:
    text = "theorem t : {0} + 0 = {0} := by\n  simp\n\ntheorem open{0} : {0} = {0} := by\n  sorry\n"
    calls = [("lean_check", {"text": text.format(n)}) for n in range(1, 4)]
    with agent(f"--root={shelf}", "--lean=wasm") as other:
        goal = served.call("lean_goals", text=text.format(7))["goals"][0]
        theirs = other.call("lean_goals", text=text.format(8))["goals"][0]
        answers = served.many(calls) + other.many(calls)
        for number, answer in enumerate(answers):
            found = answer.structured_content
            assert isinstance(found, dict)
            assert found["sorries"] == [f"open{number % 3 + 1}"]
        assert served.call("lean_try", goal=goal["goal"], tactics=["exact rfl"])
        assert "8 = 8" in theirs["text"]
        lean = other.leans
        assert lean
    assert not set(lean) & set(descendants(os.getpid())), "its Lean has ended with it"


def test_an_answer_that_is_not_json_does_not_stop_the_server() -> None:
    import mcp_types

    from treewright.mcp_server import stdio

    broken = mcp_types.JSONRPCResponse(jsonrpc="2.0", id=3, result={"text": "\ud800"})
    assert json.loads(stdio._line(broken))["id"] == 3
    assert json.loads(stdio._line(broken))["error"]["code"] == mcp_types.INTERNAL_ERROR
