"""The manifest on disk: snapshot and tail, damage, and owners that lost their lease."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import pytest

from tests.tree.making import finished, manifest, queued
from treewright.kernel.errors import LeaseLost, StorageError, UsageError
from treewright.kernel.storage.lease import Lease
from treewright.tree.records import events as ev
from treewright.tree.records import store
from treewright.tree.records.model import Manifest
from treewright.tree.records.store import RunStore


class Owned:
    """A store with its lease, closed in order."""

    def __init__(self, run_dir: Path, *, force: bool = False) -> None:
        self.lease = Lease.acquire(run_dir / "lease", force=force)
        try:
            self.store = RunStore(run_dir, self.lease, lambda _: None)
        except StorageError:
            self.lease.release()
            raise

    def close(self, *, snapshot: bool = True) -> None:
        if snapshot:
            self.store.snapshot()
        self.store.close()
        self.lease.release()


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run with three evaluations, two of them finished; its owner has ended."""
    path = tmp_path / "run"
    path.mkdir()
    owned = Owned(path)
    owned.store.record(ev.RunCreated(manifest=manifest()))
    owned.store.record(queued(1), queued(2), queued(3))
    owned.store.record(finished(1), finished(2, error="tests_failed"))
    owned.close()
    return path


def state_of(found: Manifest) -> Manifest:
    """Return the state without the facts of its storage."""
    found = copy.deepcopy(found)
    found.snapshot = manifest().snapshot
    return found


def replayed(run_dir: Path) -> Manifest:
    """Return the state that the journal alone gives."""
    bare = run_dir.with_name("replayed")
    shutil.rmtree(bare, ignore_errors=True)
    shutil.copytree(run_dir, bare)
    (bare / "manifest.json").unlink(missing_ok=True)
    return state_of(store.load(bare))


def append(run_dir: Path, *numbers: int, snapshot: bool = False) -> None:
    owned = Owned(run_dir)
    owned.store.record(*(queued(number) for number in numbers))
    owned.close(snapshot=snapshot)


def test_the_snapshot_equals_the_replayed_journal(run_dir: Path) -> None:
    found = store.load(run_dir)
    assert found.snapshot.journal_offset == (run_dir / "events.jsonl").stat().st_size
    assert state_of(found) == replayed(run_dir)
    assert [e.status for e in found.evaluations.values()] == ["completed", "failed", "pending"]


def test_loading_applies_the_tail_after_the_snapshot(run_dir: Path) -> None:
    before = (run_dir / "manifest.json").read_bytes()
    append(run_dir, 4, 5)
    assert (run_dir / "manifest.json").read_bytes() == before, "not written at every event"
    found = store.load(run_dir)
    assert len(found.evaluations) == 5
    assert state_of(found) == replayed(run_dir)
    append(run_dir, 6, snapshot=True)
    assert state_of(store.load(run_dir)) == replayed(run_dir)


@pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "not json", "a list"])
def test_a_lost_manifest_is_rebuilt_from_the_journal(run_dir: Path, damage: str) -> None:
    expected = replayed(run_dir)
    path = run_dir / "manifest.json"
    data = path.read_bytes()
    changed = {"empty": b"", "truncated": data[: len(data) // 2], "not json": b"\0" * 900}
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(changed.get(damage, b"[]"))
    assert state_of(store.load(run_dir)) == expected
    append(run_dir, snapshot=True)
    assert store.is_checksum_valid(path.read_bytes())
    assert len(store.load(run_dir).evaluations) == 3


def test_every_truncation_of_the_manifest_is_detected(run_dir: Path) -> None:
    path = run_dir / "manifest.json"
    data, expected = path.read_bytes(), replayed(run_dir)
    for length in range(0, len(data) - 1, 97):
        path.write_bytes(data[:length])
        assert state_of(store.load(run_dir)) == expected


def test_a_manifest_of_another_version_is_refused(run_dir: Path) -> None:
    path = run_dir / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"format_version": 1', b'"format_version": 99'))
    with pytest.raises(UsageError, match=r"format_version 99.*use the version that wrote it"):
        store.load(run_dir)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"beam_width": 1', b'"beam_width": 2'),
        (b'"score": 0.01', b'"score": 9.01'),
        (b'"status": "failed"', b'"status": "completed"'),
        (b'"journal_offset": ', b'"journal_offset": 1'),
        (b"\n", b"\n\n"),
    ],
)
def test_a_manifest_edited_by_hand_is_refused(run_dir: Path, old: bytes, new: bytes) -> None:
    path = run_dir / "manifest.json"
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(StorageError, match=r"edited by hand.*Delete it.*nothing is lost"):
        store.load(run_dir)
    path.unlink()
    assert len(store.load(run_dir).evaluations) == 3


def test_a_snapshot_that_a_replaced_owner_wrote_late_is_discarded(run_dir: Path) -> None:
    stalled = Owned(run_dir)
    stalled.store.snapshot()
    late = (run_dir / "manifest.json").read_bytes()
    successor = Owned(run_dir, force=True)
    successor.store.record(queued(4), queued(5))
    successor.close()
    (run_dir / "manifest.json").write_bytes(late)
    assert len(store.load(run_dir).evaluations) == 5
    append(run_dir, 6, snapshot=True)
    assert len(store.load(run_dir).evaluations) == 6
    stalled.close(snapshot=False)


def test_a_replaced_owner_can_neither_record_nor_snapshot(run_dir: Path) -> None:
    stalled = Owned(run_dir)
    successor = Owned(run_dir, force=True)
    before = (run_dir / "events.jsonl").read_bytes(), (run_dir / "manifest.json").read_bytes()
    with pytest.raises(LeaseLost):
        stalled.store.snapshot()
    with pytest.raises(LeaseLost):
        stalled.store.record(queued(4))
    stalled.store.snapshot()
    assert len(stalled.store.manifest.evaluations) == 3, "and believes nothing it could not write"
    after = (run_dir / "events.jsonl").read_bytes(), (run_dir / "manifest.json").read_bytes()
    assert after == before
    stalled.close(snapshot=False)
    successor.close()


def test_a_lost_journal_is_an_error_every_time_and_never_a_new_run(run_dir: Path) -> None:
    (run_dir / "events.jsonl").unlink()
    manifest_before = (run_dir / "manifest.json").read_bytes()
    for _ in range(3):
        with pytest.raises(StorageError, match="restore it from a backup"):
            Owned(run_dir)
    assert (run_dir / "manifest.json").read_bytes() == manifest_before


def test_a_journal_shorter_than_the_manifest_is_an_error(run_dir: Path) -> None:
    data = (run_dir / "events.jsonl").read_bytes()
    (run_dir / "events.jsonl").write_bytes(data[:-300])
    with pytest.raises(StorageError, match="shorter than"):
        store.load(run_dir)


def test_a_journal_line_that_contradicts_the_state_is_an_error(run_dir: Path) -> None:
    (run_dir / "manifest.json").unlink()
    lines = (run_dir / "events.jsonl").read_text().splitlines()
    broken = [line for line in lines if '"type":"queued"' not in line]
    (run_dir / "events.jsonl").write_text("\n".join(broken) + "\n")
    with pytest.raises(StorageError, match=r"ending at byte \d+ does not fit"):
        store.load(run_dir)


def test_a_missing_run_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no tree run at"):
        store.load(tmp_path / "none")
    assert not store.exists(tmp_path / "none")


def test_a_deleted_lease_directory_loses_nothing(run_dir: Path) -> None:
    shutil.rmtree(run_dir / "lease")
    from treewright.kernel.storage import journal

    lease = Lease.acquire(run_dir / "lease", after=journal.last_epoch(run_dir / "events.jsonl"))
    owned = RunStore(run_dir, lease, lambda _: None)
    owned.record(queued(4))
    owned.close()
    lease.release()
    (run_dir / "manifest.json").unlink()
    assert len(store.load(run_dir).evaluations) == 4


def test_ten_thousand_evaluations_cost_few_snapshots(tmp_path: Path, monkeypatch) -> None:
    written: list[int] = []
    real = store.atomic.write_bytes

    def count(path: Path, data: bytes) -> None:
        written.append(len(data))
        real(path, data)

    monkeypatch.setattr(store.atomic, "write_bytes", count)
    monkeypatch.setattr(store.journal.os, "fsync", lambda _: None)
    owned = Owned(tmp_path)
    owned.store.record(ev.RunCreated(manifest=manifest()))
    for number in range(1, 10_001):
        owned.store.record(queued(number))
        owned.store.record(finished(number))
        owned.store.snapshot_if_due()
    assert 1 <= len(written) <= 12
    journal_size = (tmp_path / "events.jsonl").stat().st_size
    assert sum(written) < 8 * journal_size, "the rewriting is a constant share of the history"
    owned.close()
    assert len(json.loads((tmp_path / "manifest.json").read_text())["evaluations"]) == 10_000


def test_an_unchanged_snapshot_is_not_written_again(run_dir: Path) -> None:
    owned = Owned(run_dir)
    path = run_dir / "manifest.json"
    try:
        owned.store.snapshot()
        first = path.stat().st_ino, path.read_bytes()
        owned.store.snapshot()
        assert (path.stat().st_ino, path.read_bytes()) == first
        path.unlink()
        owned.store.snapshot()
        assert path.read_bytes() == first[1]
        owned.store.record(queued(4))
        owned.store.snapshot()
        assert "e000004" in store.load(run_dir).evaluations
        assert path.read_bytes() != first[1]
    finally:
        owned.close()
