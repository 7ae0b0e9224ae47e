"""The reducer: applying an event twice has no effect, and the order of completions does not
matter."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.tree.making import finished, manifest, queued, recommendation
from treewright.kernel.storage.artifacts import Artifact
from treewright.kernel.storage.lease import Owner
from treewright.llm.usage import Usage
from treewright.tree.records import events as ev
from treewright.tree.records import state
from treewright.tree.records.model import (
    Confirmation,
    Decision,
    FileDigest,
    GateDecision,
    IdeaRecord,
    Manifest,
    Node,
    NodeArtifacts,
    SkippedIdea,
)

COUNT = 6
amounts = st.lists(st.floats(0, 1e4), min_size=COUNT, max_size=COUNT)


def expanded(depth: int = 1) -> ev.NodeExpanded:
    path = "node_ideas/n0000/idea_000.md"
    return ev.NodeExpanded(
        node_id="n0000",
        depth=depth,
        ideas=[IdeaRecord(path, "s", f"key-{depth}", "ideas/a.md", depth)],
        context_ideas_dirs=["node_ideas/n0000"],
        context_idea_files=[FileDigest(path, "s")],
        dedupe_scope="global",
        skipped=[SkippedIdea("ideas/b.md", "k", path)],
        usage=Usage(1, 2, 0.1),
    )


def decided(depth: int = 1) -> ev.Decided:
    node = Node(
        node_id="n0001", parent_node_id="n0000", depth=depth, commit="d", tree="tree-1", ref=None,
        worktree_path=None, baseline_results_csv_path="artifacts/e000001_results.csv",
        sweep_config_limit=8, idea_chain=["node_ideas/n0000/idea_001.md"], status="frontier",
        created_at="", node_ideas_dir="node_ideas/n0001", root_relative=recommendation(),
        artifacts=NodeArtifacts(promoted_from_eval_id="e000001"),
    )  # fmt: skip
    gate = GateDecision(True, [])
    return ev.Decided(
        depth=depth,
        decisions={"e000001": Decision("promoted", gate, 1, "n0001")},
        nodes=[node],
        frontier=["n0001"],
        stop_reason="max_depth_reached",
    )


def story() -> list[ev.Event]:
    """Return one event of every kind, in a possible order."""
    owner = Owner("t", 1, "s", "h", "", takeover="forced")
    artifact = Artifact("artifacts/n0000_heldout.csv", "s", 1, "")
    confirmation = Confirmation(8, 12, True, [], 0.1, 0.1, 0.0, 0.2, 0.0)
    events: list[ev.Event] = [
        ev.LeaseTaken(owner=owner, epoch=1),
        ev.RunCreated(manifest=manifest()),
        ev.LeaseTaken(owner=owner, epoch=2, at="2026"),
        expanded(),
        queued(1),
        queued(2),
        ev.Started(eval_id="e000001", attempt=1),
        ev.Requeued(eval_id="e000001", attempt=1, reason="lost"),
        ev.Started(eval_id="e000001", attempt=2),
        ev.Started(eval_id="e000002", attempt=1),
        finished(2, 0.7, 0.3, error="tests_failed"),
        finished(1, 0.1, 0.2),
        ev.HeldoutMeasured(node_id="n0000", artifact=artifact, seconds=1.5),
        ev.Confirmed(eval_id="e000001", confirmation=confirmation, seconds=2.5),
        decided(),
        ev.Stopped(reason="max_depth_reached"),
    ]
    return events


def tell(events: Iterable[ev.Event], start: Manifest | None = None) -> Manifest:
    current = start
    for event in events:
        current = state.apply(current, copy.deepcopy(event))
    assert current is not None
    return current


def test_events_build_the_expected_manifest() -> None:
    found = tell(story())
    first, second = found.evaluations["e000001"], found.evaluations["e000002"]
    assert (first.status, first.attempt, second.status) == ("completed", 2, "failed")
    assert first.decision is not None
    assert first.decision.promoted_to_node_id == "n0001"
    assert found.frontier == ["n0001"]
    assert found.expanded == ["n0000"]
    assert found.nodes["n0000"].status == "expanded"
    assert found.nodes["n0000"].generated_idea_files == ["node_ideas/n0000/idea_000.md"]
    assert found.depths[0].eval_ids == ["e000001", "e000002"]
    assert (found.spent.evals, found.spent.confirmations) == (2, 1)
    assert found.spent.cost_usd == 0.6
    assert found.spent.seconds == 1.5 + 2.5 + 0.7 + 0.233 + 0.1 + 0.033
    assert found.takeovers[0]["epoch"] == 2
    assert found.stop_reason == "max_depth_reached"


def test_events_before_the_creation_of_the_run_are_refused() -> None:
    events = story()
    assert state.apply(None, events[0]) is None
    assert state.apply(None, expanded()) is None


def test_an_event_applied_twice_in_a_row_has_one_effect() -> None:
    events = story()
    expected = tell(events)
    assert tell(event for event in events for _ in range(2)) == expected


@given(st.integers(1, 15), st.integers(1, 15))
def test_an_event_repeated_later_has_no_effect(which, at) -> None:
    events = story()
    which, at = min(which, at), max(which, at)
    repeated = [*events[: at + 1], events[which], *events[at + 1 :]]
    assert tell(repeated) == tell(events)


@given(st.permutations(range(1, COUNT + 1)), amounts, amounts)
def test_completions_may_arrive_in_any_order(order, seconds, costs) -> None:
    queue = [queued(number) for number in range(1, COUNT + 1)]
    start = tell([ev.RunCreated(manifest=manifest()), expanded(), *queue])
    done = {
        number: finished(
            number, seconds[number - 1], costs[number - 1], error=("", "x")[number % 2]
        )
        for number in range(1, COUNT + 1)
    }
    expected = tell(done.values(), copy.deepcopy(start))
    assert tell((done[number] for number in order), copy.deepcopy(start)) == expected


def test_the_first_outcome_of_an_evaluation_counts() -> None:
    start = [ev.RunCreated(manifest=manifest()), queued(1), finished(1)]
    late = [finished(1, error="internal_error"), ev.Started(eval_id="e000001", attempt=9)]
    late += [ev.Requeued(eval_id="e000001", attempt=9, reason="lost")]
    assert tell([*start, *late]) == tell(start)


def test_events_survive_a_round_trip_through_json() -> None:
    decoder = msgspec.json.Decoder(ev.Event)
    again = [decoder.decode(msgspec.json.encode(event)) for event in story()]
    assert tell(again) == tell(story())


def test_a_depth_without_promotions_keeps_the_frontier_if_the_run_is_to_continue() -> None:
    empty = ev.Decided(depth=1, decisions={}, nodes=[], frontier=["n0000"], stop_reason=None)
    found = tell([ev.RunCreated(manifest=manifest()), expanded(), queued(1), finished(1), empty])
    assert found.frontier == ["n0000"]
    assert found.nodes["n0000"].status == "frontier"
    again = tell([expanded(2)], found)
    assert [idea.depth for idea in again.nodes["n0000"].ideas] == [1, 2]
    assert again.expanded == ["n0000"]
