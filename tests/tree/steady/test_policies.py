"""Searches without a barrier: every policy, any timing, and workers that are never idle."""

from __future__ import annotations

import itertools
import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.parallel.harness import Shuffled
from tests.toy import ToyRepository
from tests.tree.steady.running import DRY, POLICIES, REAL, as_bytes, steady
from treewright.kernel.executors.protocol import Done, Worker
from treewright.tree.evaluating.request import HeldoutRequest
from treewright.tree.ideas.idea_source import DirectorySource, IdeaSourceError
from treewright.tree.records import store
from treewright.tree.records.model import EvalError, EvalOutcome
from treewright.tree.report import write_report
from treewright.tree.run.faults import Paused
from treewright.tree.run.outcomes import FailureRules
from treewright.tree.run.parallelism import Parallelism
from treewright.tree.validation import validate

numbers = itertools.count()
PATIENT = FailureRules(retries=2, retried="faults", first_backoff_seconds=0.0)


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> ToyRepository:
    return ToyRepository.create(tmp_path_factory.mktemp("steady") / "target repo")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_gives_the_same_tree_whatever_the_timing(toy: ToyRepository, policy: str) -> None:
    manifest = steady(toy.path, f"{policy}-1", policy)
    first = toy.run_dir(f"{policy}-1")
    assert manifest.stop_reason == "max_total_idea_evals"
    assert len(manifest.evaluations) == manifest.spent.evals == 14
    fates = {e.decision.fate for e in manifest.evaluations.values() if e.decision}
    assert {"promoted", "gate_failed", "evaluation_failed"} <= fates
    assert manifest.current_depth > 1
    assert manifest.spent.confirmations > 0
    assert validate(first, toy.path) == []
    assert f"policy `{policy}`" in write_report(first, manifest).read_text()
    for seed, capacity in enumerate((2, 3, 4, 4)):
        name = f"{policy}-{next(numbers)}x"
        faults = 0.4 * (seed % 2)
        steady(
            toy.path, name, policy, failures=PATIENT,
            make_executor=lambda work, seed=seed, capacity=capacity, faults=faults: Shuffled(
                work, seed, capacity, faults
            ),
        )  # fmt: skip
        assert as_bytes(toy.run_dir(name)) == as_bytes(first), f"{capacity} workers, seed {seed}"


def test_live_order_is_recorded_resumes_and_validates(toy: ToyRepository) -> None:
    class Interrupted(Shuffled):
        def next_done(self, timeout: float | None = None) -> Done | None:
            if len(done) == 6:
                raise KeyboardInterrupt
            found = super().next_done(timeout)
            if found is not None:
                done.append(found)
            return found

        def close(self) -> None: ...

    done: list[Done] = []
    shape = replace(DRY, dedupe_scope="node_plus_ancestors", ideas_per_node=1)
    for policy in POLICIES:
        done.clear()
        run_id, run_dir = f"live-{policy}", toy.run_dir(f"live-{policy}")
        with pytest.raises(KeyboardInterrupt):
            steady(
                toy.path, run_id, policy, shape, order="live",
                make_executor=lambda work: Interrupted(work, 1, 3, 0.0),
            )  # fmt: skip
        assert validate(run_dir, toy.path) == []
        manifest = steady(
            toy.path, run_id, None, make_executor=lambda work: Shuffled(work, 2, 3, 0.0)
        )
        assert validate(run_dir, toy.path) == []
        assert manifest.stop_reason in ("no_new_ideas", "max_total_idea_evals")
        assert "cannot be repeated" in write_report(run_dir, manifest).read_text()
        assert validate(run_dir, toy.path) == []


class Watched(Shuffled):
    """An executor that records, whenever the search waits, whether a worker is idle."""

    run_dir: Path
    lookahead: int | None
    idle: list[str]

    def next_done(self, timeout: float | None = None) -> Done | None:
        manifest = store.load(self.run_dir)
        undecided = [e for e in manifest.evaluations.values() if e.decision is None]
        is_full = self.lookahead is not None and len(undecided) >= self.lookahead
        budget = len(manifest.evaluations) < (manifest.max_total_idea_evals or 0)
        has_ideas = timeout is None  # with a timeout the search polls for ideas
        if budget and has_ideas and not is_full and len(self._waiting) < self.capacity:
            self.idle.append(f"{len(self._waiting)} of {self.capacity} at {len(undecided)} open")
        return super().next_done(timeout)


@pytest.mark.parametrize("order", ["fixed", "live"])
def test_workers_are_never_idle_while_there_is_budget(toy: ToyRepository, order: str) -> None:
    idle: list[str] = []
    run_id = f"busy-{order}"

    def watched(work) -> Watched:
        made = Watched(work, 7, 3, 0.0)
        made.run_dir, made.idle = toy.run_dir(run_id), idle
        made.lookahead = 6 if order == "fixed" else None
        return made

    manifest = steady(
        toy.path, run_id, "ab-mcts", replace(DRY, max_total_idea_evals=20), order=order,
        lookahead=6, make_executor=watched,
    )  # fmt: skip
    assert len(manifest.evaluations) == 20
    assert idle == []


def test_a_search_ends_when_there_are_no_more_ideas(toy: ToyRepository) -> None:
    shape = replace(DRY, dedupe_scope="global", max_total_idea_evals=100)
    manifest = steady(toy.path, "few", "best-first", shape)
    steady_state = manifest.policy_record
    assert steady_state is not None
    assert manifest.stop_reason == "no_new_ideas"
    assert len(manifest.evaluations) == 5
    exhausted = {found.node_id for found in steady_state.exhausted}
    assert exhausted == {n.node_id for n in manifest.nodes.values() if n.depth < 3}
    assert manifest.frontier == []
    assert validate(toy.run_dir("few"), toy.path) == []


def test_a_node_gets_no_more_than_its_branching(toy: ToyRepository) -> None:
    manifest = steady(toy.path, "narrow", "best-first", replace(DRY, max_total_idea_evals=30))
    assert max(n.tried or 0 for n in manifest.nodes.values()) == 5  # as many as there are ideas
    assert validate(toy.run_dir("narrow"), toy.path) == []


@pytest.mark.parametrize("policy", ["mcts"])
def test_a_real_run_uses_the_gate_worktrees_and_confirmations(
    toy: ToyRepository, policy: str
) -> None:
    manifest = steady(toy.path, "real", policy, REAL)
    run_dir = toy.run_dir("real")
    assert validate(run_dir, toy.path) == []
    assert len(manifest.nodes) > 2
    for node in list(manifest.nodes.values())[1:]:
        evaluation = manifest.evaluations[node.artifacts.promoted_from_eval_id or ""]
        assert evaluation.confirmation is not None
        assert evaluation.confirmation.held
        assert node.artifacts.heldout == evaluation.confirmation.results_csv
    assert list((run_dir / "cand").iterdir()) == []
    copies = toy.git("for-each-ref", "--format=%(refname)", "refs/treewright/real/artifacts")
    for node in manifest.nodes.values():
        assert Path(node.baseline_results_csv_path).name in copies
    steady(toy.path, "real-2", policy, REAL, parallelism=Parallelism(max_evals=3))
    assert as_bytes(toy.run_dir("real-2")) == as_bytes(run_dir)


def test_an_outage_pauses_the_run_and_does_not_inform_the_policy(toy: ToyRepository) -> None:
    class Down(Shuffled):
        def next_done(self, timeout: float | None = None) -> Done | None:
            if self.finished < 4 or not self._waiting:
                self.finished += 1
                return super().next_done(timeout)
            request = self._waiting.pop()
            if isinstance(request, HeldoutRequest):
                return Done(request, self._work(request), worker=Worker("w", os.getpid()))
            error = EvalError("llm_unreachable", "no route", retryable=True)
            return Done(request, EvalOutcome(error=error), worker=Worker("w", os.getpid()))

        finished = 0

    with pytest.raises(Paused, match=r"paused after \d+ of \d+ evaluations: .*llm_unreachable"):
        steady(toy.path, "outage", "mcts", make_executor=lambda work: Down(work, 3, 2, 0.0))
    assert validate(toy.run_dir("outage"), toy.path) == []
    steady(toy.path, "outage", None)
    steady(toy.path, "no-outage", "mcts")
    assert as_bytes(toy.run_dir("outage")) == as_bytes(toy.run_dir("no-outage"))


def test_running_evaluations_finish_before_a_failed_source_pauses_the_run(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DirectorySource.propose

    def failing(self, context, taken):
        if context.round > 1:
            raise IdeaSourceError("the source is away")
        return real(self, context, taken)

    with monkeypatch.context() as patch:
        patch.setattr(DirectorySource, "propose", failing)
        with pytest.raises(IdeaSourceError, match="the source is away"):
            steady(toy.path, "ideas", "random", REAL, lookahead=2)
    found = store.load(toy.run_dir("ideas"))
    assert found.evaluations
    assert all(e.decision is not None for e in found.evaluations.values())
    steady(toy.path, "ideas", None)
    assert validate(toy.run_dir("ideas"), toy.path) == []


def test_ideas_are_generated_while_evaluations_run(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source blocks until two more evaluations have finished, which would never happen if those
    evaluations waited for it."""
    through, real, enough = [], DirectorySource.propose, threading.Event()

    def slow(self, context, taken):
        if context.round == 2:
            assert enough.wait(60)
        return real(self, context, taken)

    def watch(event: object) -> None:
        if type(event).__name__ == "Settled":
            through.append(event)
            enough.set()

    monkeypatch.setattr(DirectorySource, "propose", slow)
    steady(toy.path, "beside", "best-first", REAL, observer=watch)
    assert len(through) == 6


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_search_resumes_after_every_line_of_its_journal(toy: ToyRepository, start: int) -> None:
    shape = replace(DRY, max_total_idea_evals=6, dedupe_scope="node_plus_ancestors")
    name = f"whole-{start}"
    steady(toy.path, name, "random", shape)
    expected = as_bytes(toy.run_dir(name))
    lines = (toy.run_dir(name) / "events.jsonl").read_bytes().splitlines(keepends=True)
    begun = next(i for i, line in enumerate(lines) if json.loads(line)["type"] == "run_created")
    run_dir = toy.run_dir(name)
    for end in range(begun + 1 + start, len(lines), 3):
        (run_dir / "manifest.json").unlink()
        (run_dir / "events.jsonl").write_bytes(b"".join(lines[:end]))
        steady(toy.path, name, None)
        assert as_bytes(run_dir) == expected, f"cut after line {end}"
    assert validate(run_dir, toy.path) == []


def test_beam_search_confirms_all_candidates_for_the_beam_at_once(toy: ToyRepository) -> None:
    under_way: list[int] = []

    class Counting(Shuffled):
        def next_done(self, timeout: float | None = None) -> Done | None:
            if all(isinstance(request, HeldoutRequest) for request in self._waiting):
                under_way.append(len(self._waiting))
            return super().next_done(timeout)

    from tests.parallel.harness import search
    from treewright.tree.run.creation import Shape

    shape = Shape(
        ideas_per_node=5, beam_width=2, max_depth=1, sweep_config_limit=8, confirm_configs=4,
        dry_run=True,
    )  # fmt: skip
    search(toy.path, "beam-1", shape)
    search(toy.path, "beam-2", shape, make_executor=lambda work: Counting(work, 1, 4, 0.0))
    assert max(under_way) == 2
    assert as_bytes(toy.run_dir("beam-1")) == as_bytes(toy.run_dir("beam-2"))
    confirmed = [
        [json.loads(x)["eval_id"] for x in path.read_text().splitlines() if '"confirmed"' in x[:30]]
        for path in (toy.run_dir(name) / "events.jsonl" for name in ("beam-1", "beam-2"))
    ]
    assert confirmed[0] == confirmed[1] != []
