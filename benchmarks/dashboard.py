"""`python -m benchmarks.dashboard`: a run of 10,000 evaluations in a browser, and 50 clients.

Everything is real: the command, the run's journal, a headless Chromium, clients over HTTP.
The clients are what open pages are: each listens for changes and asks now and then.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path

from playwright.sync_api import expect
from tests.browser import chromium
from tests.dashboard import samples
from tests.dashboard.serving import Server, served

from benchmarks.measure import Row, Table, render

EVALUATIONS = 10_000
CLIENTS = 50
LOAD_SECONDS = 2.0
P99_MILLISECONDS = 50.0
_THINK_SECONDS = 0.5
_DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
_CALLS = (
    "/api/runs",
    "/api/tree/0/big?since={version}",
    "/api/tree/0/big/item/{item}",
    "/api/health",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dashboard", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    options = parser.parse_args()
    turns, seconds = (2, 5.0) if options.quick else (5, 20.0)
    with tempfile.TemporaryDirectory() as name:
        project = Path(name)
        samples.large(project / ".treewright" / "tree_runs" / "big", EVALUATIONS)
        loads = [_load(project) for _ in range(turns)]
        with served("--runs", project) as server:
            taken = asyncio.run(_crowd(server, seconds))
    rows = [
        Row("a cold page of 10,000 evaluations, drawn", sorted(loads)[len(loads) // 2], "s",
            target=LOAD_SECONDS),
        Row("an API call, median", 1000 * taken[len(taken) // 2], "ms"),
        Row("an API call, p99", 1000 * taken[int(len(taken) * 0.99)], "ms",
            target=P99_MILLISECONDS),
    ]  # fmt: skip
    note = f"{CLIENTS} clients listening, {len(taken):,} calls in {seconds:.0f} s"
    table = Table("dashboard", "Dashboard", rows, note)
    print(render(table))
    return 1 if options.check and any(row.met is False for row in table.rows) else 0


def _load(project: Path) -> float:
    """From the address to a drawn tree, the server just started and the run not read yet."""
    with served("--runs", project) as server, chromium.launched() as browser:
        page = browser.new_page()
        started = time.perf_counter()
        page.goto(f"{server.base}/tree/0/big")
        expect(page.locator("main")).to_contain_text("10000 of 10000", timeout=60_000)
        page.evaluate(_DRAWN)
        return time.perf_counter() - started


async def _crowd(server: Server, seconds: float) -> list[float]:
    """The times of all calls, sorted."""
    version = server.get("/api/tree/0/big").json()["tree"]["version"]
    until = time.perf_counter() + seconds
    taken = await asyncio.gather(*(_one(server.port, n, version, until) for n in range(CLIENTS)))
    return sorted(one for times in taken for one in times)


async def _one(port: int, number: int, version: str, until: float) -> list[float]:
    """A page: one connection that listens, one that asks."""
    chance = random.Random(number)
    taken: list[float] = []
    _, listening = await _opened(port, "/api/changes?run=tree/0/big")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        await asyncio.sleep(_THINK_SECONDS * (0.5 + chance.random()))
        item = f"e{chance.randint(1, EVALUATIONS):06d}"
        call = chance.choice(_CALLS).format(version=version, item=item)
        started = time.perf_counter()
        writer.write(_request(call))
        await _answer(reader)
        taken.append(time.perf_counter() - started)
    for stream in (listening, writer):
        stream.close()
    return taken


async def _opened(port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_request(path))
    await reader.readuntil(b"event: hello")
    return reader, writer


def _request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


async def _answer(reader: asyncio.StreamReader) -> None:
    """Reads one answer whole. A client of few instructions, so that the server is measured."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    assert head.startswith("http/1.1 200"), head
    await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r")[0]))


if __name__ == "__main__":
    raise SystemExit(main())
