"""Pages are notified of changes, the watcher stops without listeners, and memory is bounded."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx

from tests.dashboard import proof_runs, samples
from tests.dashboard.serving import served
from treewright.dashboard import change_stream
from treewright.dashboard.change_stream import Changes, Listener
from treewright.dashboard.roots import Roots

LIMIT = 60.0


def read_event(lines) -> tuple[str, dict]:
    """Return the next event and skip the server's keep-alive messages."""
    name, silent = "", 0
    for line in lines:
        silent += line.startswith(":")
        assert silent < 5, "nothing was told"
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            return name, json.loads(line.removeprefix("data: "))
    raise AssertionError("the stream ended")


def test_a_change_is_sent_to_the_page(tmp_path: Path) -> None:
    first = proof_runs.ProofRun(tmp_path, "first")
    with served("--runs", tmp_path) as running:
        address = f"{running.base}/api/changes"
        with httpx.stream("GET", address, timeout=LIMIT) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = response.iter_lines()
            name, hello = read_event(lines)
            assert (name, set(hello)) == ("hello", {"boot"})
            first.iterate(0)
            assert read_event(lines) == ("change", {"runs": ["proof/0/first"]})
            proof_runs.ProofRun(tmp_path, "second")
            assert "proof/0/second" in read_event(lines)[1]["runs"], "a new run is a change"


async def next_event(stream) -> bytes:
    return await asyncio.wait_for(anext(stream), LIMIT)


def test_a_listener_receives_only_changes_of_its_run(tmp_path: Path) -> None:
    one, two = proof_runs.ProofRun(tmp_path, "one"), proof_runs.ProofRun(tmp_path, "two")

    async def listen() -> None:
        hub = Changes(Roots([tmp_path]))
        mine, all_of_them = hub.stream("proof/0/one"), hub.stream(None)
        assert b"hello" in await next_event(mine)
        assert b"hello" in await next_event(all_of_them)
        heard: set[str] = set()
        ears = asyncio.ensure_future(next_event(mine))
        while not ears.done():
            two.iterate(0)
            one.iterate(0)
            event = (await next_event(all_of_them)).partition(b"data: ")[2]
            heard |= set(json.loads(event)["runs"])
            await asyncio.sleep(0)
        assert b'["proof/0/one"]' in ears.result()
        assert heard <= {"proof/0/one", "proof/0/two"}
        watcher = hub._watcher
        assert watcher is not None
        await mine.aclose()
        await all_of_them.aclose()
        await asyncio.wait_for(watcher, LIMIT)

    asyncio.run(listen())


def test_a_slow_listener_holds_one_entry_per_run() -> None:
    async def fill() -> Listener:
        listener = Listener(None)
        for number in range(10_000):
            listener.notify({f"tree/0/run{number % 7}"})
        return listener

    assert len(asyncio.run(fill()).changed) == 7


def test_too_many_listeners_are_sent_to_polling(tmp_path: Path) -> None:
    async def crowd() -> None:
        hub = Changes(Roots([tmp_path]))
        streams = [hub.stream(None) for _ in range(change_stream.MAX_LISTENERS)]
        for stream in streams:
            await next_event(stream)
        assert hub.full
        await streams[0].aclose()
        assert not hub.full
        for stream in streams[1:]:
            await stream.aclose()

    asyncio.run(crowd())


def test_a_poll_detects_growth_and_owner_changes(tmp_path: Path) -> None:
    run = tmp_path / ".treewright" / "tree_runs" / "a"
    samples.large(run, 10, each=10)
    roots = Roots([tmp_path])
    before = change_stream.read_signatures(roots, {None})
    assert before == change_stream.read_signatures(roots, {"tree/0/a"}), (
        "the same, if only one is wanted"
    )
    assert change_stream.read_signatures(roots, {"tree/0/b", "nonsense", "tree/x/y"}) == {}
    with (run / "events.jsonl").open("ab") as file:
        file.write(b"\n")
    assert change_stream.read_signatures(roots, {None}) != before
