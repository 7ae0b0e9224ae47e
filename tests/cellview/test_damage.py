"""Interventions: blocks, delays, reroutes. They are recorded and change only the schedule."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cellview.running import lines, run, start
from treewright.proving.cell_settings import CellSettings
from treewright.proving.cell_settings import PlannedIntervention as Planned
from treewright.proving.records import Intervention, Iteration


def done(written: list[Iteration]) -> list[Intervention]:
    return [one for line in written for one in line.interventions]


def workers(written: list[Iteration]) -> set[int | None]:
    return {line.agent for line in written if line.node is not None}


def test_all_cells_blocked_for_ever_is_an_abort() -> None:
    runner = start(CellSettings(agents=3, block_fraction=1.0, block_permanent=True))
    written = lines(runner, 100)
    assert [line.reason for line in written] == ["blocked"] * 3 + ["abort"]
    assert runner.finished
    assert runner.aborted
    assert written[-1].agent is None
    assert len(runner.tree.nodes) == 1


def test_a_fraction_of_the_cells_is_blocked_for_ever() -> None:
    settings = CellSettings(agents=8, inflight=4, block_fraction=0.5, block_permanent=True)
    written = run(settings, 150, seed=2)
    blocks = done(written)
    frozen = {one.agent for one in blocks}
    assert len(frozen) == 4
    assert all(one.kind == "block" and one.until is None for one in blocks)
    assert workers(written) == set(range(8)) - frozen
    assert Counter(line.reason for line in written)["blocked"] == 4  # once each, not for ever
    others = {one.agent for one in done(run(settings, 20, seed=3))}
    assert others != frozen


def test_a_block_ends_after_its_time() -> None:
    settings = CellSettings(agents=2, inflight=2, block_fraction=1.0, block_duration=10)
    written = run(settings, 40)
    assert [line.reason for line in written[:2]] == ["blocked", "blocked"]
    assert [one.kind for one in done(written)] == ["block", "block", "unblock", "unblock"]
    first = next(line for line in written if line.node is not None)
    assert first.tick is not None
    assert first.tick >= 10


def test_unfreezing_may_take_several_draws() -> None:
    settings = CellSettings(
        agents=6, block_fraction=1.0, block_duration=5, unfreeze_prob=0.3, block_at=4
    )
    kinds = Counter((one.kind, one.agent) for one in done(run(settings, 150, seed=1)))
    blocks = [count for (kind, _), count in kinds.items() if kind == "block"]
    assert max(blocks) > 1  # blocked again when a draw failed
    assert all(kinds["unblock", agent] == 1 for agent in range(6))


def test_a_delay_keeps_the_reservation_while_others_work() -> None:
    settings = CellSettings(
        agents=3,
        inflight=3,
        schedule=(Planned(at=4, kind="delay", agent=1, duration=12),),
    )
    runner = start(settings)
    written = lines(runner, 60)
    at = next(index for index, line in enumerate(written) if line.reason == "delayed")
    delayed = written[at]
    assert delayed.agent == 1
    (intervention,) = delayed.interventions
    assert (intervention.kind, intervention.agent) == ("delay", 1)
    assert intervention.until is not None
    meanwhile = [line for line in written[at + 1 :] if (line.tick or 0) <= intervention.until]
    assert {line.agent for line in meanwhile} == {0, 2}
    again = next(line for line in written[at + 1 :] if line.agent == 1)
    assert again.tick is not None
    assert again.tick > intervention.until


def test_delays_are_drawn_with_their_probability() -> None:
    settings = CellSettings(agents=4, inflight=2, delay_prob=0.25, delay_duration=3)
    reasons = Counter(line.reason for world in range(6) for line in run(settings, 120, 1, world))
    worked = sum(reasons.values()) - reasons["delayed"]
    assert 0.17 < reasons["delayed"] / worked < 0.33


def blocked_child(reroute_max: int) -> tuple[list[Iteration], int]:
    """A run in which the node that the cell wants first is blocked for ever."""
    plain = run(CellSettings(agents=1, inflight=1), 30)
    wanted = next(line.path[1] for line in plain if len(line.path) > 1)
    settings = CellSettings(
        agents=1,
        inflight=1,
        reroute_max=reroute_max,
        give_up=3,
        schedule=(Planned(at=0, kind="block", node=wanted, permanent=True),),
    )
    return run(settings, 60), wanted


def test_a_cell_in_front_of_an_immovable_node_goes_elsewhere() -> None:
    written, wanted = blocked_child(reroute_max=2)
    rerouted = [line for line in written if line.reason == "rerouted"]
    assert rerouted
    assert {(one.agent, one.node) for line in rerouted for one in line.interventions} >= {
        (0, wanted)
    }
    assert not any(wanted in line.path for line in written)
    assert sum(line.node is not None for line in written) > 30


def test_a_cell_that_may_not_go_elsewhere_gives_up() -> None:
    written, wanted = blocked_child(reroute_max=0)
    assert not any(line.reason == "rerouted" for line in written)
    assert [line.reason for line in written[-3:]] == ["blocked", "blocked", "abort"]
    assert not any(wanted in line.path for line in written)


@pytest.mark.parametrize("most", [1, 2, 4])
def test_reroutes_in_a_row_have_a_maximum(most: int) -> None:
    settings = CellSettings(
        agents=2, block_fraction=0.6, block_target="nodes", block_duration=6, reroute_max=most
    )
    longest = 0
    for world in range(10):
        in_a_row = Counter[int | None]()
        for line in run(settings, 100, world, world):
            in_a_row[line.agent] = in_a_row[line.agent] + 1 if line.reason == "rerouted" else 0
            longest = max(longest, in_a_row[line.agent])
    assert longest == most


def test_blocked_nodes_are_not_reserved_while_they_are_blocked() -> None:
    settings = CellSettings(
        agents=3,
        inflight=2,
        stay=1,  # so that every way is gone from the root, past everything on it
        block_fraction=0.3,
        block_target="nodes",
        block_duration=25,
    )
    until: dict[int, int] = {}
    met = passed = 0
    for world in range(6):
        until.clear()
        for line in run(settings, 120, world, world):
            for one in line.interventions:
                if one.kind == "block" and one.node is not None and one.until is not None:
                    until[one.node] = one.until
                    met += 1
                elif one.kind == "unblock" and one.node is not None:
                    assert until.pop(one.node) <= (line.tick or 0)
                    passed += 1
            assert not [node for node in line.path if until.get(node, 0) > (line.tick or 0)]
    assert met > 20
    assert passed > 5


def test_a_fraction_of_nodes_spares_the_root() -> None:
    settings = CellSettings(block_fraction=1.0, block_target="nodes", block_permanent=True)
    written = run(settings, 400)
    assert {line.node for line in written if line.node is not None} == {0}
    assert written[-1].reason == "abort"


def test_orders_unblock_whom_they_name() -> None:
    schedule = (
        Planned(at=0, kind="block", fraction=1.0, permanent=True),
        Planned(at=7, kind="unblock", agent=2),
        Planned(at=30, kind="unblock", agent=0),
    )
    written = run(CellSettings(agents=4, schedule=schedule), 60)
    assert [line.reason for line in written[:4]] == ["blocked"] * 4
    assert workers(written) == {0, 2}
    first = {
        agent: next(line.tick or 0 for line in written if line.agent == agent and line.path)
        for agent in (0, 2)
    }
    assert first[2] >= 7
    assert first[0] >= 30


def test_an_order_sends_a_cell_elsewhere() -> None:
    schedule = (Planned(at=20, kind="reroute", agent=0),)
    written = run(CellSettings(agents=2, schedule=schedule), 60)
    (line,) = [line for line in written if line.reason == "rerouted"]
    assert line.agent == 0
    assert [one.source for one in line.interventions] == ["schedule"]


def test_damage_changes_the_schedule_and_no_answer_of_lean() -> None:
    """Every attempt of a damaged run has the outcome that it has in any other run."""
    damaged = CellSettings(agents=4, block_fraction=0.5, delay_prob=0.3)
    runner = start(damaged, seed=1)
    lines(runner, 150)
    world = start(CellSettings()).expander._environment  # pyright: ignore[reportPrivateUsage]
    for edge in runner.tree.edges:
        kind, keys = world.outcome(edge.parent.key, edge.action)  # pyright: ignore[reportAttributeAccessIssue]
        assert kind in ("goals", "closed")
        assert tuple(child.key for child in edge.children) == keys
    assert len(runner.tree.edges) > 50
