"""The order of records: queued before dispatched, settled before decided, decided before pruned;
and how the successor of a killed coordinator goes on.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests import program
from tests.decisions import decisions, events, repeated_evaluations
from tests.parallel.harness import DRY, REAL, REAL_FLAGS, Shuffled, eventually, search
from tests.toy import ToyRepository
from treewright.kernel.executors.protocol import Done
from treewright.tree.records import events as ev
from treewright.tree.records.store import load
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.outcomes import FailureRules
from treewright.tree.run.parallelism import Parallelism

NEXT = {
    "queued": {"started"},
    "started": {"completed", "failed", "requeued"},
    "requeued": {"started"},
    "completed": set(),
    "failed": set(),
}


class Watching(Shuffled):
    """An executor that reads the disk, as after a crash, before each evaluation is dispatched."""

    def __init__(self, work, run_dir: Path, seen: list) -> None:
        super().__init__(work, seed=1, capacity=3, faults=0.3)
        self._run_dir, self._seen = run_dir, seen

    def submit(self, request) -> None:
        self._seen.append((request, load(self._run_dir)))
        super().submit(request)


def test_every_evaluation_of_a_depth_is_durably_queued_before_the_first_dispatch(
    toy: ToyRepository,
):
    seen: list = []
    search(
        toy.path, "run",
        make_executor=lambda work: Watching(work, toy.run_dir("run"), seen),
        policy=FailureRules(retries=2, retried="faults", first_backoff_seconds=0.0),
    )  # fmt: skip
    first: dict[int, int] = {}
    for request, on_disk in seen:
        evaluation = on_disk.evaluations[request.eval_id]
        assert (evaluation.status, evaluation.task_state) == ("running", "running")
        assert evaluation.attempt == request.attempt
        assert evaluation.started_at is not None
        depth_size = len(on_disk.depths[evaluation.depth - 1].eval_ids)
        assert first.setdefault(evaluation.depth, depth_size) == depth_size
    final = load(toy.run_dir("run"))
    assert first == {r.depth: len(r.eval_ids) for r in final.depths if r.eval_ids}


def test_ids_and_keys_depend_only_on_the_frontier_and_the_ideas(toy: ToyRepository):
    run_dir = search(toy.path, "run", make_executor=lambda work: Shuffled(work, 3, 4, 0))
    queued = [e for e in events(run_dir) if e["type"] == "queued"]
    assert [e["eval_id"] for e in queued] == [f"e{n:06d}" for n in range(1, len(queued) + 1)]
    for depth in {e["depth"] for e in queued}:
        keys = [(e["parent_node_id"], e["idea_path"]) for e in queued if e["depth"] == depth]
        assert keys == sorted(keys)
    keys = [(e["parent_node_id"], e["idea_path"]) for e in queued]
    assert len(set(keys)) == len(keys)


def test_every_evaluation_goes_through_the_specified_states(toy: ToyRepository):
    run_dir = search(
        toy.path, "run",
        make_executor=lambda work: Shuffled(work, 11, 4, 0.6),
        policy=FailureRules(retries=2, retried="faults", first_backoff_seconds=0.0),
    )  # fmt: skip
    last: dict[str, str] = {}
    attempts: dict[str, int] = {}
    for event in events(run_dir):
        kind = event["type"]
        if kind not in NEXT:
            continue
        eval_id = event["eval_id"]
        assert kind in (NEXT[last[eval_id]] if eval_id in last else {"queued"})
        last[eval_id] = kind
        if kind == "started":
            attempts[eval_id] = attempts.get(eval_id, 0) + 1
            assert event["attempt"] == attempts[eval_id]
    assert set(last.values()) <= {"completed", "failed"}
    manifest = json.loads((run_dir / "manifest.json").read_text())
    for eval_id, evaluation in manifest["evaluations"].items():
        assert evaluation["attempt"] == attempts[eval_id]
        assert evaluation["queued_at"] <= evaluation["started_at"] <= evaluation["finished_at"]
        assert evaluation["task_state"] == last[eval_id]
        assert evaluation["worker"].startswith("shuffled-")
        assert evaluation["worker_pid"] > 0
    assert max(attempts.values()) > 1


def test_no_evaluation_is_decided_or_pruned_before_the_last_of_its_depth(toy: ToyRepository):
    """Candidates' branches exist at the barrier, and are removed after it."""
    branches: list[tuple[str, int, int]] = []

    def observe(event) -> None:
        if isinstance(event, ev.Completed | ev.Failed | ev.Decided):
            kept = toy.git("for-each-ref", "refs/heads/treewright/run/cand").splitlines()
            manifest = load(toy.run_dir("run"))
            done = [e for e in manifest.evaluations.values() if e.candidate_commit]
            undecided = [e for e in done if e.decision is None]
            branches.append((type(event).__name__, len(kept), len(undecided)))

    run_dir = search(toy.path, "run", REAL, parallelism=Parallelism(3), observer=observe)
    for kind, kept, undecided in branches:
        assert kept >= undecided, "an undecided candidate has lost its branch"
        if kind == "Decided":
            assert kept > 0
    assert toy.git("for-each-ref", "refs/heads/treewright/run/cand") == ""
    unsettled = 0
    for event in events(run_dir):
        unsettled += {"queued": 1, "completed": -1, "failed": -1}.get(event["type"], 0)
        if event["type"] in ("decided", "confirmed", "heldout"):
            assert unsettled == 0, f"{event['type']} before the barrier"


class Dying(Shuffled):
    """An executor that raises after some completions, as with a full disk."""

    def __init__(self, work, completions: int) -> None:
        super().__init__(work, seed=completions, capacity=3, faults=0.0)
        self._left = completions

    def next_done(self, timeout: float | None = None) -> Done | None:
        if not self._left:
            self._waiting.clear()
            raise MemoryError
        self._left -= 1
        return super().next_done(timeout)


def test_a_successor_requeues_running_evaluations_and_repeats_no_others(toy: ToyRepository):
    expected = decisions(search(toy.path, "run"))
    (toy.run_dir("run")).rename(toy.path.parent / "serial")
    deaths = 0
    for completions in (0, 1, 3, 2, 0):
        request = RunRequest(toy.path, "run", shape=DRY)
        try:
            with open_run(request) as coordinator:
                coordinator.make_executor = lambda work, n=completions: Dying(work, n)  # pyright: ignore[reportAttributeAccessIssue]
                while coordinator.advance():
                    pass
        except MemoryError:
            deaths += 1
    run_dir = search(toy.path, "run")
    assert deaths >= 3
    assert decisions(run_dir) == expected
    assert repeated_evaluations(run_dir) == []
    requeued = [e for e in events(run_dir) if e["type"] == "requeued"]
    assert {e["reason"] for e in requeued} == {"lost"}
    assert len(requeued) >= deaths


@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_repeatedly_during_parallel_evaluations_finishes(
    toy: ToyRepository, treewright, seed
):
    """Each process is killed after the n-th line of the journal, until one reaches the end."""
    fresh = ToyRepository(toy.path.parent / "again" / toy.path.name)
    shutil.copytree(toy.path, fresh.path)
    expected = decisions(search(toy.path, "run", REAL))
    draw = random.Random(seed)
    arguments = [
        "tree", *REAL_FLAGS, "--tree-run-id", "run",
        "--repo", str(fresh.path), "--max-parallel-evals", "3",
    ]  # fmt: skip
    journal = fresh.run_dir("run") / "events.jsonl"
    for _ in range(2):
        before = journal.read_bytes().count(b"\n") if journal.exists() else 0
        lines = before + draw.randrange(3, 18)
        with program.start(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as it:
            eventually(
                lambda n=lines, it=it: (
                    it.poll() is not None
                    or (journal.exists() and journal.read_bytes().count(b"\n") >= n)
                ),
                "the journal grows",
            )
            it.send_signal(signal.SIGKILL)
    done = treewright(*arguments)
    assert done.returncode == 0, done.stderr
    assert decisions(fresh.run_dir("run")) == expected
    assert repeated_evaluations(fresh.run_dir("run")) == []
