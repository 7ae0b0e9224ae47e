"""The loop of one proof search: a runner takes steps, the loop keeps the limits and the trace.

A search is a function of its seed, of the answers of the tactic sources and of the answers of Lean.
All of these are in the trace. A search that is continued therefore repeats its recorded iterations
without Lean, compares each with the trace, and goes on with Lean from there.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from treewright.kernel.clock import timestamp
from treewright.proving.environment import Environment
from treewright.proving.expansion import Expander, Expansion, Recorded, estimate_provability
from treewright.proving.learning import LearnedPriors
from treewright.proving.records import (
    Counters,
    GoalOpened,
    GoalResult,
    Intervention,
    Iteration,
    PhaseKind,
    Reason,
    Refusal,
    TraceLine,
)
from treewright.proving.settings import Mode, Settings
from treewright.proving.tactics.exclusion import WithoutNames, knowledge_without
from treewright.proving.tactics.source import AskingStopped, TacticSource, stop_when
from treewright.proving.trace import Recording, TraceError, first_difference
from treewright.search.andor.graph import Edge, Graph, Node, Status

MOST_REFUSALS = 8
"""A search ends when the replay check has rejected this many of its scripts, and one more."""
Stop = Literal["solved", "exhausted", "simulations", "time", "interrupted", "abort"]

_STOP_BY_STATUS: dict[Status, Stop] = {
    Status.SOLVED: "solved",
    Status.DEAD: "exhausted",
    Status.OPEN: "abort",
}
"""Why a finished runner takes no further step."""
_RUNNER_MODULES: dict[Mode, str] = {
    "centralized": "treewright.proving.centralized",
    "distributed": "treewright.cellview.runner",
}
"""The module with the `make_runner(settings, expander)` of each mode. It is imported by name,
because a runner builds on this package. Neither mode falls back to the other."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a goal: its kind and its limits.

    The limits count the work of earlier processes too. `without` are the declarations that no
    tactic may mention; only a retry has them.
    """

    kind: PhaseKind = "prove"
    simulations: int = 200
    seconds: float | None = None
    without: tuple[str, ...] = ()


@dataclass(slots=True)
class StepReport:
    """One simulation of a runner.

    Without a leaf no node was visited: the agent was blocked or delayed.
    """

    path: Sequence[tuple[Node, Edge]]
    leaf: Node | None
    expansion: Expansion | None
    reason: Reason
    agent: int | None = None
    algotype: str | None = None
    interventions: tuple[Intervention, ...] = ()
    tick: int | None = None


class Runner(Protocol):
    """Grows a graph step by step: the centralized engine, or the cell-view runner."""

    tree: Graph
    expander: Expander

    @property
    def finished(self) -> bool:
        """Whether no further step is possible."""
        ...

    def step(self) -> StepReport:
        """Make one simulation."""
        ...

    def pause(self) -> None:
        """Wait for the requests under way, so that another search can use Lean."""
        ...

    def drain(self) -> None:
        """Give up the requests under way. Afterwards the graph is idle and no thread is left."""
        ...


class Sink(Protocol):
    """Where a search writes its lines: the trace of a run, or a list in memory."""

    @property
    def epoch(self) -> int:
        """The epoch to write into the lines."""
        ...

    def append(self, lines: list[TraceLine]) -> None:
        """Write lines at the end."""
        ...


@dataclass(slots=True)
class Stamp:
    """Position and time of an iteration in the trace."""

    epoch: int
    at: str
    iteration: int
    goal: int
    phase: PhaseKind = "prove"
    elapsed: float = 0.0


def expansion_reason(leaf: Node, expansion: Expansion) -> Reason:
    """Return the reason to record for an expanded leaf."""
    if leaf.status is Status.SOLVED:
        return "solved"
    if leaf.status is Status.DEAD:
        return "dead"
    return "expanded" if expansion.grew else "no_expansion"


def iteration_line(report: StepReport, tree: Graph, attempts: int, stamp: Stamp) -> Iteration:
    """Return the trace line of a step; `attempts` are those of the whole search so far."""
    expansion = report.expansion or Expansion()
    leaf = report.leaf
    path = tuple([node.id for node, _ in report.path])
    return Iteration(
        epoch=stamp.epoch,
        at=stamp.at,
        iteration=stamp.iteration,
        goal=stamp.goal,
        phase=stamp.phase,
        agent=report.agent,
        algotype=report.algotype,
        path=path if leaf is None else (*path, leaf.id),
        node=None if leaf is None else leaf.id,
        reason=report.reason,
        candidates=expansion.candidates,
        complete=expansion.complete,
        attempts=tuple(expansion.attempts),
        value=None if report.expansion is None else round(expansion.value, 6),
        root_value=round(tree.root.value, 6),
        counters=Counters(len(tree.nodes), len(tree.edges), tree.solved, tree.dead, attempts),
        new=tuple(expansion.new),
        solved=tuple([node.id for node in expansion.changes.solved]),
        dead=tuple([node.id for node in expansion.changes.dead]),
        interventions=report.interventions,
        tick=report.tick,
        elapsed=stamp.elapsed,
    )


def exclusion(root: Node, refusals: Sequence[Refusal]) -> tuple[tuple[int, ...], Edge]:
    """Return the edges of a solution that was rejected, and the one of them to exclude.

    The reason may be any of them. The first to be excluded is the newest: without it there was no
    solution. After further refusals it is the newest of those in most of the rejected scripts.
    """
    edges: dict[int, Edge] = {}
    waiting = [root]
    while waiting:
        edge = waiting.pop().solution
        if edge is not None and edge.id not in edges:
            edges[edge.id] = edge
            waiting += edge.children

    def suspicion(number: int) -> tuple[int, int]:
        return sum(number in refusal.edges for refusal in refusals), number

    return tuple(sorted(edges)), edges[max(edges, key=suspicion)]


@dataclass(slots=True)
class Search:
    """The search of one phase of a goal. It can be paused for another search, and continued.

    Args:
        goal: The number of the goal in its run.
        phase: Its kind and limits.
        runner: Grows the graph.
        source: Is told when to stop waiting for an answer.
        sink: Receives the lines of the trace.
        recording: The lines that earlier processes wrote of this phase.
        iteration: The number of the last iteration before this search.
        stop_asked: Returns whether the user asked to stop.
        observe: Is told of every iteration, with the graph after it.
    """

    goal: int
    phase: Phase
    runner: Runner
    source: TacticSource
    sink: Sink
    recording: Recording
    iteration: int = 0
    stop_asked: Callable[[], bool] = lambda: False
    observe: Callable[[Iteration, Graph], None] = lambda line, tree: None
    simulations: int = field(default=0, init=False)
    """The simulations so far, including those of earlier processes."""
    elapsed: float = field(default=0.0, init=False)
    """The seconds so far, including those of earlier processes."""
    refusals: list[Refusal] = field(default_factory=list[Refusal], init=False)
    """The scripts that the replay check rejected, including those of earlier processes."""
    stop: Stop | None = field(default=None, init=False)
    """Why the search ended; None before its end and while it is paused."""
    _started: float = field(default=0.0, init=False)
    _is_over: bool = field(default=False, init=False)

    def open(self, name: str, statement: str) -> None:
        """Write the opening line; if it is recorded already, compare.

        Args:
            name: The name of the goal.
            statement: The searched proposition: the goal's, or its negation.

        Raises:
            TraceError: The goal is another one than in the trace.
        """
        line = GoalOpened(
            self.sink.epoch,
            timestamp(),
            self.goal,
            self.phase.kind,
            name,
            statement,
            self.phase.simulations,
            self.runner.expander.root,
            self.phase.without,
        )
        if self.recording.opened is None:
            self.sink.append([line])
        elif difference := first_difference(self.recording.opened, line):
            raise TraceError(f"goal {self.goal} differs from the recorded one: {difference}")

    def run(self, until: int | None = None) -> Stop | None:
        """Simulate until the goal is settled, a limit is reached, or the user asks to stop.

        With `until` the search pauses after that many simulations in all and returns None; another
        call continues it. The clock of the time limit stands still during the pause.
        """
        limit = self.phase.simulations
        most = limit if until is None else min(until, limit)
        stop: Stop | None = None
        self._started = 0.0
        stop_when(self.source, self.is_over)
        try:
            while stop is None and self.simulations < most and not self.runner.finished:
                # Recorded iterations are repeated in any case, also after the time limit.
                if self.simulations >= len(self.recording.iterations):
                    stop = self._reason_to_stop()
                if stop is None:
                    self._write(self.runner.step())
            if stop is None and self.runner.finished:
                stop = _STOP_BY_STATUS[self.runner.tree.root.status]
            elif stop is None and most < limit:
                self.runner.pause()
                return None
        except AskingStopped:  # a source stopped waiting because `is_over` told it to
            # Without a time limit, only the user can have ended the wait.
            is_stopped = self.phase.seconds is None or self.stop_asked()
            stop = "interrupted" if is_stopped else "time"
        except BaseException:
            self._is_over = True
            raise
        self._is_over = True
        self.stop = stop or "simulations"
        return self.stop

    def exclude(self, result: GoalResult) -> bool:
        """Exclude an edge of a solution that the replay check rejected, so that `run` goes on.

        Returns False, and changes nothing, if too many scripts of this search were rejected.
        """
        if len(self.refusals) >= MOST_REFUSALS:
            return False
        edges, excluded = exclusion(self.runner.tree.root, self.refusals)
        refusal = Refusal(
            self.sink.epoch,
            timestamp(),
            self.goal,
            self.phase.kind,
            self.iteration,
            edges,
            excluded.id,
            result,
        )
        self.sink.append([refusal])
        self._enter(refusal, excluded)
        self.stop = None
        self._is_over = False
        return True

    def _enter(self, refusal: Refusal, excluded: Edge) -> None:
        self.refusals.append(refusal)
        self.runner.expander.exclude(excluded)

    def is_over(self) -> bool:
        """Return whether a source that waits for an answer should stop waiting."""
        return self._is_over or (self._started > 0.0 and self._reason_to_stop() is not None)

    def _write(self, report: StepReport) -> None:
        """Append the line of a step, or compare it with the recorded line of that step."""
        recorded, runner, done = self.recording.iterations, self.runner, self.simulations
        known = recorded[done] if done < len(recorded) else None
        self.iteration += 1
        self.simulations += 1
        self.elapsed = self._clock() if known is None else known.elapsed
        stamp = Stamp(
            epoch=self.sink.epoch if known is None else known.epoch,
            at=timestamp() if known is None else known.at,
            iteration=self.iteration,
            goal=self.goal,
            phase=self.phase.kind,
            elapsed=round(self.elapsed, 3),
        )
        line = iteration_line(report, runner.tree, runner.expander.attempts, stamp)
        if known is None:
            self.sink.append([line])
        elif difference := first_difference(known, line):
            raise TraceError(f"iteration {self.iteration} comes out differently: {difference}")
        self.observe(line, runner.tree)
        for refusal in self.recording.refusals_after(self.iteration):
            self._enter(refusal, runner.tree.edges[refusal.excluded])

    def _reason_to_stop(self) -> Stop | None:
        """Return why no new iteration may begin. The first call starts the clock."""
        if not self._started:
            self._started = time.monotonic() - self.elapsed
        if self.phase.seconds is not None and self._clock() >= self.phase.seconds:
            return "time"
        return "interrupted" if self.stop_asked() else None

    def _clock(self) -> float:
        return time.monotonic() - self._started


def make_expander(
    settings: Settings,
    environment: Environment,
    source: TacticSource,
    recorded: Recorded,
    *,
    keeps_tries: bool = False,
    without: Sequence[str] = (),
) -> Expander:
    """Return the expander of a search.

    Args:
        settings: The settings of the run.
        environment: Applies tactics: Lean, or a recording.
        source: Suggests tactics.
        recorded: Returns the recorded suggestions for a node, if there are any.
        keeps_tries: Whether the search is to yield lessons.
        without: Declarations that no tactic may mention.
    """
    known = environment.knowledge if settings.sources.known else None
    if without:
        source = WithoutNames(source, without, environment)
        known = knowledge_without(known, without) if known is not None else None
    lessons = settings.sources.learned
    return Expander(
        environment,
        source,
        estimate_provability,
        batch=settings.batch,
        discount=settings.policy.discount,
        recorded=recorded,
        known=known,
        learned=LearnedPriors(lessons) if lessons else None,
        keeps_tries=keeps_tries,
    )


def make_runner(settings: Settings, expander: Expander) -> Runner:
    """Return the runner of the settings' mode."""
    module = importlib.import_module(_RUNNER_MODULES[settings.mode])
    make: Callable[[Settings, Expander], Runner] = module.make_runner
    return make(settings, expander)
