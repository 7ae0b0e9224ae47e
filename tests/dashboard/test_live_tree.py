"""Following a journal gives the same tree as reading it from its beginning."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from tests.dashboard import samples
from treewright.dashboard.tree_library import LiveTree
from treewright.tree.records import store


def test_reading_in_pieces_equals_reading_at_once(run_dir: Path, tmp_path: Path) -> None:
    lines = (run_dir / "events.jsonl").read_bytes().splitlines(keepends=True)
    copy = tmp_path / "copy"
    copy.mkdir()
    live = LiveTree(copy)
    for line in lines:
        with (copy / "events.jsonl").open("ab") as file:
            file.write(line[: len(line) // 2])
            file.flush()
            live.refresh()  # half a line is not a record yet
            file.write(line[len(line) // 2 :])
        live.refresh()
        assert live.problem in ("", "the run has no first record")
    whole = store.load(run_dir)
    assert live.manifest is not None
    whole.snapshot = live.manifest.snapshot
    assert msgspec.to_builtins(live.manifest) == msgspec.to_builtins(whole)


def test_only_changes_are_sent(tmp_path: Path) -> None:
    run = tmp_path / "run"
    samples.large(run, 30, each=10)
    events = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    queued = next(i for i, line in enumerate(events) if b'"queued"' in line)
    (run / "events.jsonl").write_bytes(b"".join(events[: queued + 2]))
    live = LiveTree(run).refresh()
    before = live.version
    assert live.touched_since(before) == set()
    with (run / "events.jsonl").open("ab") as file:
        file.write(events[queued + 2])
    live.refresh()
    assert live.touched_since(before) == {"e000003"}
    assert live.touched_since(None) is None
    assert live.touched_since("0.5") is None, "another generation"
    assert live.touched_since("1.99999999") is None, "further than we are"


def test_a_replaced_run_is_read_from_its_beginning(tmp_path: Path) -> None:
    run = tmp_path / "run"
    samples.large(run, 20, each=10)
    live = LiveTree(run).refresh()
    before = live.version
    shutil.rmtree(run)
    samples.large(run, 10, each=10)
    live.refresh()
    assert live.manifest is not None
    assert len(live.manifest.evaluations) == 10
    assert live.touched_since(before) is None


def test_a_damaged_journal_is_reported_and_not_fatal(tmp_path: Path) -> None:
    run = tmp_path / "run"
    samples.large(run, 20, each=10)
    data = (run / "events.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    lines[5] = b'{"type": "queu\n'
    (run / "events.jsonl").write_bytes(b"".join(lines))
    live = LiveTree(run).refresh()
    assert "damaged" in live.problem
    assert live.manifest is not None, "what was before the damage is shown"


def test_a_journal_that_links_outside_is_not_read(tmp_path: Path) -> None:
    real, run = tmp_path / "real", tmp_path / "run"
    samples.large(real, 10, each=10)
    run.mkdir()
    (run / "events.jsonl").symlink_to(real / "events.jsonl")
    live = LiveTree(run).refresh()
    assert live.manifest is None
    assert "not a file of this run" in live.problem
