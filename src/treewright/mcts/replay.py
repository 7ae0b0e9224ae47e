"""`treewright replay`: does a run come out the same again?

Live, every iteration is searched again with Lean and compared with the trace. Offline, Lean's
answers are taken from the trace and everything that was decided is decided again: where to go,
what to add, what is solved. Both report the first difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.lean.session import LeanSession
from treewright.mcts.environment import Environment, LeanEnvironment
from treewright.mcts.expansion import Expander
from treewright.mcts.invariants import check
from treewright.mcts.prooftree import Status
from treewright.mcts.recording import FedEnvironment, Recording, TraceError
from treewright.mcts.records import Iteration, TraceLine, VerdictReached
from treewright.mcts.runners import make_runner
from treewright.mcts.search import Runner
from treewright.mcts.settings import RunRecord, read_run
from treewright.mcts.sources.base import TacticSource
from treewright.mcts.targets import GoalSpec, goals_of
from treewright.mcts.trace import first_difference, read_trace
from treewright.mcts.turn import Stamp, record
from treewright.mcts.values import estimate

_NEEDS_CLOSED_ROOT = ("proved", "partial", "rejected")


@dataclass(frozen=True, slots=True)
class Replayed:
    """How much was compared, and the first difference, if there is one."""

    goals: int
    iterations: int
    difference: str = ""


def replay_offline(directory: Path, source: TacticSource) -> Replayed:
    """Checks a trace against itself. The source is never asked: its answers are in the trace."""
    run = read_run(directory / "run.json")
    lines = read_trace(directory / "trace.jsonl")
    if problem := _order(lines):
        return Replayed(0, 0, problem)
    return _replay(run, lines, lambda recording: FedEnvironment(recording, None), source, True)


def replay_live(
    directory: Path, sessions: Callable[[], LeanSession], source: TacticSource
) -> Replayed:
    """Searches again, goal by goal, each in a fresh session."""
    run = read_run(directory / "run.json")
    lines = read_trace(directory / "trace.jsonl")
    specs = {spec.number: spec for spec in goals_of(run.target, sessions)}
    environments: list[LeanEnvironment] = []

    def environment(recording: Recording) -> Environment:
        while environments:
            environments.pop().close()
        assert recording.opened is not None
        spec: GoalSpec = specs[recording.opened.goal]
        environments.append(
            LeanEnvironment(sessions, spec.opening, step_seconds=run.settings.step_timeout)
        )
        return environments[-1]

    try:
        return _replay(run, lines, environment, source, run.settings.sources.outside)
    finally:
        while environments:
            environments.pop().close()


def _replay(
    run: RunRecord,
    lines: Sequence[TraceLine],
    environment: Callable[[Recording], Environment],
    source: TacticSource,
    recorded_suggestions: bool,
) -> Replayed:
    goals = list(dict.fromkeys(line.goal for line in lines))
    compared = 0
    for goal in goals:
        recording = Recording(goal, lines)
        if recording.opened is None:
            continue  # it never got as far as a tree: ill-typed
        try:
            expander = Expander(
                environment(recording),
                source,
                estimate,
                batch=run.settings.batch,
                discount=run.settings.policy.discount,
                recorded=recording.suggestions if recorded_suggestions else _nothing,
            )
            if expander.root.key != recording.opened.root.key:
                return Replayed(len(goals), compared, f"goal {goal}: it is another one now")
            runner = make_runner(run.settings, expander)
            for line in recording.iterations:
                if difference := _again(runner, line):
                    where = f"goal {goal}, iteration {line.iteration}: {difference}"
                    return Replayed(len(goals), compared, where)
                compared += 1
            runner.drain()
            check(runner.tree)
        except (TraceError, AssertionError) as error:
            return Replayed(len(goals), compared, f"goal {goal}: {error}")
        if difference := _verdict(goal, lines, runner):
            return Replayed(len(goals), compared, difference)
    return Replayed(len(goals), compared)


def _nothing(_node: int, _round_number: int) -> None:
    return None


def _again(runner: Runner, line: Iteration) -> str:
    if runner.finished:
        return "the search is over before it"
    turn = runner.step()
    stamp = Stamp(line.epoch, line.at, line.iteration, line.goal, line.elapsed)
    return first_difference(line, record(turn, runner.tree, runner.expander.attempts, stamp))


def _verdict(goal: int, lines: Sequence[TraceLine], runner: Runner) -> str:
    verdicts = [ln for ln in lines if isinstance(ln, VerdictReached) and ln.goal == goal]
    if not verdicts:
        return ""
    solved = runner.tree.root.status is Status.SOLVED
    if solved != (verdicts[-1].status in _NEEDS_CLOSED_ROOT):
        state = "is solved" if solved else "is not solved"
        return f"goal {goal}: the verdict is {verdicts[-1].status}, but the root {state}"
    return ""


def _order(lines: Sequence[TraceLine]) -> str:
    expected = 1
    for line in lines:
        if isinstance(line, Iteration):
            if line.iteration != expected:
                return f"iteration {expected} is missing: {line.iteration} stands in its place"
            expected += 1
    return ""
