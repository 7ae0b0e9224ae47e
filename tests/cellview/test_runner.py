"""The clock: books in order at every step, the same trace for a seed, Lean one step at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cellview.running import HARD, expander_of, lines, run, start
from tests.proving.synthetic import Tactics, World
from treewright.cellview.runner import CellViewRunner
from treewright.proving.cell_settings import ALGOTYPES, CellSettings, PlannedIntervention
from treewright.proving.environment import Outcome
from treewright.proving.expansion import Expander
from treewright.proving.records import GoalView
from treewright.proving.tactics.source import Suggestions
from treewright.search.andor.graph import Status
from treewright.search.andor.invariants import check

DAMAGED = CellSettings(
    agents=8,
    inflight=4,
    algotypes=("puct", "ucb", "best_first", "random"),
    refresh=4,
    block_fraction=0.4,
    block_duration=15,
    unfreeze_prob=0.5,
    delay_prob=0.2,
    schedule=(
        PlannedIntervention(10, "block", fraction=0.1, target="nodes", duration=8),
        PlannedIntervention(12, "block", node=3, permanent=True),
        PlannedIntervention(20, "reroute", fraction=0.5),
        PlannedIntervention(30, "delay", agent=1, duration=9),
    ),
)


@st.composite
def any_settings(draw: st.DrawFn) -> CellSettings:
    agents = draw(st.integers(1, 6))
    permanent = draw(st.booleans())
    return CellSettings(
        agents=agents,
        inflight=draw(st.integers(1, agents)),
        algotypes=tuple(draw(st.sampled_from(ALGOTYPES)) for _ in range(agents)),
        view=draw(st.sampled_from(["subtree", "radius"])),
        radius=draw(st.integers(1, 3)),
        stride=draw(st.integers(0, 3)),
        stay=draw(st.integers(1, 5)),
        refresh=draw(st.integers(1, 9)),
        depth_limit=draw(st.integers(1, 6)),
        block_fraction=draw(st.sampled_from([0.0, 0.3, 1.0])),
        block_target=draw(st.sampled_from(["agents", "nodes"])),
        block_at=draw(st.integers(0, 12)),
        block_duration=draw(st.integers(1, 9)),
        block_permanent=permanent,
        unfreeze_prob=draw(st.sampled_from([0.3, 1.0])),
        delay_prob=draw(st.sampled_from([0.0, 0.4])),
        reroute_max=draw(st.integers(0, 3)),
        give_up=2,
    )


@settings(max_examples=60, deadline=None)
@given(
    asked=any_settings(),
    seed=st.integers(0, 10**6),
    size=st.integers(3, 80),
    closing=st.sampled_from([0.0, 0.05, 0.2]),
)
def test_the_books_are_right_after_every_step(
    asked: CellSettings, seed: int, size: int, closing: float
) -> None:
    runner = start(asked, seed, world=seed, size=size, closing=closing)
    tick = 0
    for _ in range(40):
        if runner.finished:
            break
        settled = {node.id for node in runner.tree.nodes if node.status is not Status.OPEN}
        turn = runner.step()
        check(runner.tree, idle=False)
        assert runner.in_flight <= asked.inflight
        assert runner.tree.root.virtual == runner.in_flight
        assert turn.tick is not None
        assert turn.tick >= tick
        tick = turn.tick
        if turn.leaf is not None:
            assert turn.leaf.id not in settled
            assert turn.expansion is not None
        else:
            assert turn.reason in ("blocked", "delayed", "rerouted", "terminal", "dead", "abort")
    runner.drain()
    runner.tree.check()


@settings(max_examples=40, deadline=None)
@given(asked=any_settings(), seed=st.integers(0, 10**6))
def test_every_run_ends(asked: CellSettings, seed: int) -> None:
    """In a world with few goals: solved, dead, or aborted because the rest is out of reach."""
    runner = start(asked, seed, world=seed, size=6, closing=0.0)
    written = lines(runner, 3000)
    assert runner.finished
    runner.drain()
    runner.tree.check()
    assert (written[-1].reason == "abort") == runner.aborted
    assert runner.aborted or runner.tree.root.status is Status.DEAD


def test_five_repetitions_with_eight_damaged_cells_are_the_same() -> None:
    first = run(DAMAGED, 250, seed=7)
    reasons = {line.reason for line in first}
    assert reasons >= {"expanded", "blocked", "delayed", "rerouted"}
    assert {line.agent for line in first} == set(range(8))
    for _ in range(4):
        assert run(DAMAGED, 250, seed=7) == first


def test_another_seed_is_another_run() -> None:
    assert run(DAMAGED, 80, seed=7) != run(DAMAGED, 80, seed=8)
    walking = CellSettings(agents=2, algotypes=("random",))
    assert run(walking, 80, seed=1) != run(walking, 80, seed=2)


def test_without_chance_the_seed_does_not_matter() -> None:
    assert run(CellSettings(), 80, seed=1) == run(CellSettings(), 80, seed=2)


def test_a_run_that_starts_again_is_the_same_run() -> None:
    """Resuming is running again; so a shorter run must be the beginning of a longer one."""
    whole = run(DAMAGED, 120, seed=3)
    for steps in (1, 17, 60):
        assert run(DAMAGED, steps, seed=3) == whole[:steps]


def test_iterations_are_written_as_the_published_lines() -> None:
    for line in run(DAMAGED, 60, seed=7):
        assert msgspec.json.decode(msgspec.json.encode(line), type=type(line)) == line


class SerialWorld(World):
    """Insists on one call at a time, from one thread."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, **HARD)  # pyright: ignore[reportArgumentType]
        self._busy = threading.Lock()
        self.threads: set[int] = set()

    def apply(self, node: int, tactic: str) -> Outcome:
        assert self._busy.acquire(blocking=False), "two steps at once"
        try:
            self.threads.add(threading.get_ident())
            return super().apply(node, tactic)
        finally:
            self._busy.release()


class SlowTactics(Tactics):
    """Takes longer for some goals than for others, so that answers overtake each other."""

    overlaps = True

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        self.threads.add(threading.get_ident())
        time.sleep(0.002 * (hash(goals[0].target) % 3))  # hash of a string: other in every process
        return super().suggest(goals, round_number)


def test_suggestions_overlap_and_lean_does_not() -> None:
    world, tactics = SerialWorld(1), SlowTactics()

    def value(goals: Sequence[GoalView]) -> float:
        return 0.3 + 0.01 * (int(goals[0].target) % 50)

    runner = CellViewRunner(Expander(world, tactics, value, batch=2), DAMAGED, 7)
    overlapping = lines(runner, 120)
    runner.drain()
    assert world.threads == {threading.get_ident()}
    assert threading.get_ident() not in tactics.threads
    assert overlapping == run(DAMAGED, 120, seed=7)


def test_a_source_that_fails_in_its_thread_fails_the_step() -> None:
    class Broken(SlowTactics):
        def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
            raise RuntimeError("endpoint gone")

    runner = CellViewRunner(Expander(World(1), Broken(), lambda goals: 0.5), CellSettings(), 0)
    with pytest.raises(RuntimeError, match="endpoint gone"):
        runner.step()
    runner.drain()
    runner.tree.check()


def test_a_reservation_overtaken_by_others_is_not_expanded() -> None:
    """A cell that is late finds its node, or the way to it, settled."""
    late = CellSettings(agents=6, inflight=6, delay_prob=0.3, delay_duration=15)
    shape = {"size": 100, "closing": 0.1, "failing": 0.6}
    overtaken = [
        line
        for world in range(40)
        for line in lines(CellViewRunner(expander_of(world, **shape), late, world), 120)
        if line.reason in ("terminal", "dead") and line.node is None
    ]
    assert {line.reason for line in overtaken} == {"terminal", "dead"}
    assert all(line.attempts == () and line.value is None for line in overtaken)
