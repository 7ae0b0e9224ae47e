"""The memory of the library is bounded, and dropped runs can be read again."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.dashboard import samples
from treewright.dashboard.roots import Roots
from treewright.dashboard.tree_library import NO_RECORD, TreeLibrary
from treewright.kernel.storage.lease import Lease
from treewright.tree.records import layout, store


def test_the_least_used_run_is_forgotten_and_read_again(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        samples.large(tmp_path / ".treewright" / "tree_runs" / name, 20, each=10)
    runs = Roots([tmp_path]).scan()
    size = (runs[0].path / "events.jsonl").stat().st_size
    library = TreeLibrary(most_bytes=2 * size + size // 2)
    for run in (*runs, *runs):
        answer = json.loads(library.tree(run, None))
        assert len(answer["evals"]) == 20
        assert library.held_bytes() <= 2 * size + size // 2


def test_answers_for_old_versions_are_dropped(tmp_path: Path) -> None:
    samples.large(tmp_path / ".treewright" / "tree_runs" / "a", 20, each=10)
    (run,) = Roots([tmp_path]).scan()
    library = TreeLibrary()
    for since in range(100):
        library.tree(run, f"1.{since}")
    assert len(library._runs.get(run).documents) <= 8


def test_an_unchanged_run_needs_no_new_answer(tmp_path: Path) -> None:
    samples.large(tmp_path / ".treewright" / "tree_runs" / "a", 20, each=10)
    (run,) = Roots([tmp_path]).scan()
    library = TreeLibrary()
    assert library.find_cached(run, None) is None
    made = library.tree(run, None)
    assert library.find_cached(run, None) is made
    with (run.path / "events.jsonl").open("ab") as file:
        file.write(b'{"type": "torn')
    assert library.find_cached(run, None) is None


def test_a_run_without_records_is_running_while_its_owner_prepares_it(
    tmp_path: Path,
) -> None:
    """The sweep of the baseline may take hours; the journal starts after it."""
    place = tmp_path / ".treewright" / "tree_runs" / "new"
    lease = Lease.acquire(place / layout.LEASE)
    (place / store.EVENTS).write_bytes(b"")
    (run,) = Roots([tmp_path]).scan()
    library = TreeLibrary()

    def now() -> dict:
        return library.summary(run)

    try:
        prepared = now()
        assert prepared["liveness"].state == "running"
        assert str(os.getpid()) in prepared["liveness"].detail
        assert prepared["problem"] == NO_RECORD
        assert prepared["eta_seconds"] is None
    finally:
        lease.release()
    left = now()["liveness"]
    assert (left.state, left.detail) == ("damaged", NO_RECORD), "nobody prepares it any more"


def test_an_unreadable_journal_is_damaged_for_any_owner(tmp_path: Path) -> None:
    place = tmp_path / ".treewright" / "tree_runs" / "torn"
    lease = Lease.acquire(place / layout.LEASE)
    try:
        (place / store.EVENTS).write_bytes(b'nonsense\n{"type":"queued","epoch":1}\n')
        (run,) = Roots([tmp_path]).scan()
        assert TreeLibrary().summary(run)["liveness"].state == "damaged"
    finally:
        lease.release()
