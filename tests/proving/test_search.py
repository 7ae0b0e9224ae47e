"""The loop and its trace: limits, continuing from any point, finding changes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.proving.synthetic import Tactics, World
from treewright.lean.session.answers import Goal
from treewright.proving.centralized import CentralizedEngine
from treewright.proving.environment import views
from treewright.proving.expansion import Expander
from treewright.proving.records import (
    Attempt,
    GoalView,
    Iteration,
    TraceLine,
)
from treewright.proving.search import Phase, Search, Stop
from treewright.proving.tactics.source import AskingStopped, Suggestions
from treewright.proving.trace import (
    RecordedEnvironment,
    Recording,
    TraceError,
    TraceWriter,
    first_difference,
    read_trace,
    without_clock,
)
from treewright.search.andor.policies.mcts import Mcts

SEED = 11
SIMULATIONS = 40


class Lines:
    """A trace in memory."""

    epoch = 1

    def __init__(self) -> None:
        self.lines: list[TraceLine] = []

    def append(self, lines: list[TraceLine]) -> None:
        self.lines += lines


def search(
    earlier: list[TraceLine],
    world: World | None,
    *,
    phase: Phase | None = None,
    sink: Lines | None = None,
    stop_after: int | None = None,
) -> tuple[Stop, list[TraceLine], CentralizedEngine]:
    """Runs a search that may have been begun before; returns all its lines, old and new."""
    sink = sink or Lines()
    recording = Recording(0, earlier)
    expander = Expander(
        RecordedEnvironment(recording, world),
        Tactics(),
        lambda goals: 0.3 + 0.01 * (int(goals[0].target) % 50) if goals else 0.0,
        batch=2,
        recorded=recording.suggestions,
    )
    engine = CentralizedEngine(expander, Mcts())
    count = itertools.count()
    job = Search(
        0, phase or Phase(simulations=SIMULATIONS), engine, Tactics(), sink, recording,
        stop_asked=lambda: stop_after is not None and next(count) >= stop_after,
    )  # fmt: skip
    job.open("goal", "0")
    stop = job.run()
    return stop, [*earlier, *sink.lines], engine


def world() -> World:
    return World(SEED, size=200, closing=0.0, failing=0.3)


def plain(lines: list[TraceLine]) -> list[object]:
    return [without_clock(line) for line in lines]


class Unanswered(Tactics):
    """A source that waits until it is told to stop waiting."""

    def stop_when(self, stop: Callable[[], bool]) -> None:
        self._stop = stop

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        while not self._stop():
            time.sleep(0.01)
        raise AskingStopped


@pytest.mark.parametrize(("seconds", "stops"), [(0.05, "time"), (None, "interrupted")])
def test_waiting_for_a_source_ends_with_the_search(seconds: float | None, stops: Stop) -> None:
    source, sink, count = Unanswered(), Lines(), itertools.count()
    expander = Expander(world(), source, lambda goals: 0.5)
    engine = CentralizedEngine(expander, Mcts())
    phase = Phase(simulations=SIMULATIONS, seconds=seconds)
    job = Search(
        0, phase, engine, source, sink, Recording(0, []),
        stop_asked=lambda: seconds is None and next(count) > 3,
    )  # fmt: skip
    job.open("goal", "0")
    assert job.run() == stops
    assert not [line for line in sink.lines if isinstance(line, Iteration)]
    assert job.is_over()


def test_a_search_stops_at_its_limit_of_simulations() -> None:
    stop, lines, engine = search([], world())
    assert stop == "simulations"
    iterations = [line for line in lines if isinstance(line, Iteration)]
    assert [line.iteration for line in iterations] == list(range(1, SIMULATIONS + 1))
    last = iterations[-1].counters
    assert (last.nodes, last.edges) == (len(engine.tree.nodes), len(engine.tree.edges))
    assert last.attempts == sum(len(line.attempts) for line in iterations)


def test_the_same_seed_gives_the_same_trace() -> None:
    assert plain(search([], world())[1]) == plain(search([], world())[1])


def test_continued_from_any_line_the_trace_is_the_same() -> None:
    whole = plain(search([], world())[1])
    _, lines, _ = search([], world())
    for kept in range(len(lines)):
        again = world()
        _, continued, engine = search(lines[:kept], again)
        assert plain(continued) == whole, f"continued after {kept} lines"
        engine.tree.check()
        recorded = {(ln.node, a.tactic) for ln in lines[:kept] if isinstance(ln, Iteration)
                    for a in ln.attempts}  # fmt: skip
        assert not recorded & set(again.calls), "what was recorded is not asked again"


def test_an_interrupted_search_continues() -> None:
    whole = plain(search([], world())[1])
    stop, lines, _ = search([], world(), stop_after=7)
    assert stop == "interrupted"
    assert len(lines) == 8
    assert plain(search(lines, world())[1]) == whole


def test_the_time_limit_counts_earlier_processes() -> None:
    _, lines, _ = search([], world(), stop_after=5)
    old = [
        msgspec.structs.replace(line, elapsed=9.0) if isinstance(line, Iteration) else line
        for line in lines
    ]
    stop, continued, _ = search(old, world(), phase=Phase(simulations=SIMULATIONS, seconds=8.0))
    assert stop == "time"
    assert len(continued) == len(old)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda it: msgspec.structs.replace(it, root_value=it.root_value + 0.01), "root_value"),
        (lambda it: msgspec.structs.replace(it, path=(*it.path, 0)), "path"),
        (lambda it: msgspec.structs.replace(it, reason="dead"), "reason"),
        (
            lambda it: msgspec.structs.replace(
                it, attempts=(*it.attempts, Attempt("t9", "error", 0.0))
            ),
            "attempts",
        ),
        (
            lambda it: msgspec.structs.replace(it, attempts=it.attempts[:-1]),
            "attempts|has no answer",
        ),
    ],
)
def test_a_changed_trace_is_found_out(change: object, message: str) -> None:
    _, lines, _ = search([], world(), phase=Phase(simulations=10))
    index = 6
    line = lines[index]
    assert isinstance(line, Iteration)
    changed = [*lines[:index], change(line), *lines[index + 1 :]]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TraceError, match=message):
        search(changed, None, phase=Phase(simulations=10))


def test_lines_survive_the_file_and_a_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    _, lines, _ = search([], world(), phase=Phase(simulations=10))
    writer = TraceWriter(path, 1, lambda: None)
    writer.append(lines)
    writer.close()
    assert read_trace(path) == lines
    data = path.read_bytes()
    path.write_bytes(data[:-7])
    assert read_trace(path) == lines[:-1]
    writer = TraceWriter(path, 2, lambda: None)
    last = msgspec.structs.replace(lines[-1], epoch=2)
    writer.append([last])
    writer.close()
    assert read_trace(path) == [*lines[:-1], last]
    assert first_difference(lines[-1], last) == ""


def test_late_lines_of_a_replaced_owner_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    _, lines, _ = search([], world(), phase=Phase(simulations=5))
    late = TraceWriter(path, 1, lambda: None)
    late.append(lines[:4])
    new = TraceWriter(path, 2, lambda: None)
    late.append(lines[4:5])  # slipped in before the new owner's first line
    taken_over = [msgspec.structs.replace(line, epoch=2) for line in lines[4:]]
    new.append(taken_over)
    late.append(lines[5:])
    late.close()
    new.close()
    assert read_trace(path) == [*lines[:4], *taken_over]


def test_the_scope_of_a_case_is_left_out() -> None:
    """Lean numbers it by the earlier work of the session."""
    scoped = [Goal("0", "p", case=f"pos._@._input._hyg.{number}") for number in (34, 36)]
    assert [view.case for view in views(scoped)] == ["pos", "pos"]
