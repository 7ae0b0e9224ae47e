"""`live` order while an idea source is slow: the policy chooses other nodes."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from tests.tree.runs import FinishedRun
from tests.tree.steady.running import DRY, steady
from treewright.tree.ideas.idea_source import DirectorySource
from treewright.tree.records import store
from treewright.tree.records.events import NodeExpanded
from treewright.tree.records.model import Manifest, Unset
from treewright.tree.records.steering import applied, new_command
from treewright.tree.run import command_files, policy_search
from treewright.tree.run.command_files import CommandFile
from treewright.tree.run.ideas_ahead import Generation
from treewright.tree.run.policy_search import LiveOrder
from treewright.tree.validation import validate

LONG = 120
"""The wait after which a thread that did not come counts as missing, in seconds."""
SLOW = "n0001"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """Return a run with one worker and an idea source that blocks for the first new node.

    The source blocks until two further evaluations have finished, which would never happen if those
    evaluations waited for it. All other sources count as quick, and the slow one has its ideas
    before the third choice, also on a busy machine."""
    toy = ToyRepository.create(tmp_path_factory.mktemp("live") / "repo")
    real, real_wait = DirectorySource.propose, Generation.wait
    asked: list[threading.Thread] = []
    settled: list[object] = []
    enough = threading.Event()

    def slow(self, context, taken):
        if context.node_id == SLOW:
            asked.append(threading.current_thread())
            assert enough.wait(LONG)
        return real(self, context, taken)

    def wait(self: Generation, seconds: float | None = None) -> None:
        real_wait(self, LONG if seconds and self.node_id != SLOW else seconds)

    def watch(event: object) -> None:
        if type(event).__name__ == "Settled" and asked:
            settled.append(event)
            if len(settled) == 2:
                enough.set()
                asked[0].join(LONG)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DirectorySource, "propose", slow)
        patch.setattr(Generation, "wait", wait)
        shape = replace(DRY, ideas_per_node=5)
        steady(toy.path, "run", "best-first", shape, order="live", observer=watch)
    return FinishedRun(toy, Path("/nonexistent"))


def passed_over(manifest: Manifest) -> list[str]:
    return [e.eval_id for e in manifest.evaluations.values() if not isinstance(e.without, Unset)]


def test_workers_are_not_idle_while_a_source_generates_ideas(run: FinishedRun) -> None:
    manifest = store.load(run.run_dir)
    assert len(manifest.evaluations) == DRY.max_total_idea_evals
    chosen = [manifest.evaluations[name] for name in passed_over(manifest)]
    assert len(chosen) >= 2
    assert {e.parent_node_id for e in chosen} == {"n0000"}
    assert all(e.without == ["n0001"] for e in chosen)
    assert manifest.nodes["n0001"].ideas
    assert validate(run.run_dir, run.toy.path) == []


def _no_node_was_passed_over(manifest: Manifest) -> None:
    for name in passed_over(manifest):
        manifest.evaluations[name].without = []


def _root_was_passed_over_although_it_had_ideas(manifest: Manifest) -> None:
    manifest.evaluations["e000002"].without = ["n0000"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_no_node_was_passed_over, "the best-first policy chooses"),
        (_root_was_passed_over_although_it_had_ideas, "n0000 had ideas and was passed over"),
    ],
)
def test_validation_checks_which_nodes_were_passed_over(
    run: FinishedRun, change, message: str
) -> None:
    kept = {name: (run.run_dir / name).read_bytes() for name in ("manifest.json", "events.jsonl")}
    try:
        run.rewrite_history(change)
        found = [each for each in validate(run.run_dir, run.toy.path) if message in each.message]
        assert [each.code for each in found] == ["choice_differs"]
    finally:
        for name, data in kept.items():
            (run.run_dir / name).write_bytes(data)


def test_a_command_that_arrives_before_an_expansion_does_not_end_the_run(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command arrives before the expansion, when no evaluation is under way."""
    real, sent = LiveOrder.more, []

    def more(self: LiveOrder, room: int):
        if not sent:
            sent.append(new_command("boost", node_id="n0000"))
            command_files.submit(self.parts.store.run_dir, CommandFile(sent[0]))
        return real(self, room)

    monkeypatch.setattr(LiveOrder, "more", more)
    shape = replace(DRY, max_total_idea_evals=3)
    manifest = steady(run.toy.path, "steered", "best-first", shape, order="live")
    assert len(manifest.evaluations) == 3
    assert not isinstance(manifest.steering, Unset)
    assert validate(run.toy.run_dir("steered"), run.toy.path) == []


@pytest.mark.parametrize(("order", "last_but_one"), [("live", 3), ("fixed", 2)])
def test_a_settings_change_between_two_exhausted_nodes_is_valid(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch, order: str, last_but_one: int
) -> None:
    """The change follows the first exhausted node and precedes the second, with no choice between
    the two."""
    monkeypatch.setattr(policy_search, "QUICK_SECONDS", LONG)  # the same choices at any speed
    shape = replace(DRY, dedupe_scope="node_plus_ancestors", max_total_idea_evals=40)
    name, found = f"changed-{order}", []

    def watch(event: object) -> None:
        if isinstance(event, NodeExpanded) and not event.ideas:
            found.append(event)
            if len(found) == last_but_one:
                command = new_command("ban", pattern="nothing like it")
                command_files.submit(run.toy.run_dir(name), CommandFile(command))

    manifest = steady(run.toy.path, name, "best-first", shape, order=order, observer=watch)
    (change,) = applied(manifest.steering)
    assert manifest.policy_record is not None
    before, after = manifest.policy_record.exhausted[change.exhausted - 1 :]
    assert before.choice == after.choice == len(manifest.evaluations) + 1
    assert manifest.stop_reason == "no_new_ideas"
    assert validate(run.toy.run_dir(name), run.toy.path) == []
