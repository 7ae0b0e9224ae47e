"""What a call through the MCP server costs beside the same question to a session of one's own.

    python -m benchmarks mcp

A goal and a tactic on it, by the SDK's own client over stdio and in this process. Processor time of
the server process and of this one; Lean's is the same in both and not counted.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.measure import Row, Table
from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession

STATEMENT, TACTIC = "∀ n : Nat, n + 0 = n", "simp"
TARGET_MS = 5.0


def mcp_calls(quick: bool) -> Table:
    calls = 100 if quick else 500
    with HostSession(ensure_installed()) as session:
        own = median(_asked(session, calls // 5) for _ in range(5))
    server, client, idle = asyncio.run(_through_the_server(calls))
    rows = [
        Row("a session of one's own, per question", 1000 * own, "ms"),
        Row("the server's process, per call", 1000 * server, "ms"),
        Row("of that, beside the session's own", 1000 * (server - own), "ms", target=TARGET_MS),
        Row("a call that asks no Lean, the server's process", 1000 * idle, "ms"),
        Row("the client (the SDK's), per call", 1000 * client, "ms"),
    ]
    load = f"Load average afterwards {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    return Table("mcp", "Calls of the MCP server, processor time", rows, load)


def _asked(session: HostSession, times: int) -> float:
    before = time.process_time()
    for _ in range(times):
        state = session.start(f"({STATEMENT}\n : Prop)")
        assert isinstance(state, ProofState)
        closed = session.run_tactic(state, TACTIC)
        assert isinstance(closed, ProofState)
        session.free([state, closed])
    return (time.process_time() - before) / times


async def _through_the_server(calls: int) -> tuple[float, float, float]:
    from mcp import Client, StdioServerParameters

    with tempfile.TemporaryDirectory() as root:
        arguments = ["-m", "treewright", "mcp", "--root", root, "--lean", "wasm"]
        parameters = StdioServerParameters(command=sys.executable, args=arguments)
        async with Client(parameters) as client:
            pid = _server_pid(root)

            async def cost(tool: str, given: dict[str, object]) -> tuple[float, float]:
                for _ in range(10):
                    await client.call_tool(tool, given)
                before, mine = _cpu(pid), time.process_time()
                for _ in range(calls):
                    answer = await client.call_tool(tool, given)
                    assert not answer.is_error, answer
                return (_cpu(pid) - before) / calls, (time.process_time() - mine) / calls

            server, own = await cost("lean_try", {"statement": STATEMENT, "tactics": [TACTIC]})
            idle, _ = await cost("tree_runs", {})
            return server, own, idle


def _server_pid(root: str) -> int:
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and root.encode() in (place / "cmdline").read_bytes():
            return int(place.name)
    raise AssertionError("the server is not there")


def _cpu(pid: int) -> float:
    """Seconds of the process itself, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
