"""The loop around a runner: limits, the trace, continuing where an earlier process stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from treewright.kernel.clock import timestamp
from treewright.proving.expansion import Expander, Expansion
from treewright.proving.records import (
    Counters,
    GoalOpened,
    Intervention,
    Iteration,
    Reason,
    TraceLine,
)
from treewright.proving.tactics.source import AskingStopped
from treewright.proving.trace import Recording, TraceError, first_difference
from treewright.search.andor.graph import Edge, Graph, Node, Status


@dataclass(slots=True)
class Turn:
    """One iteration. Without a leaf nothing was visited: its agent was kept from working."""

    path: Sequence[tuple[Node, Edge]]
    leaf: Node | None
    expansion: Expansion | None
    reason: Reason
    agent: int | None = None
    algotype: str | None = None
    interventions: tuple[Intervention, ...] = ()
    tick: int | None = None


@dataclass(slots=True)
class Stamp:
    """What a line says about its place and its time."""

    epoch: int
    at: str
    iteration: int
    goal: int
    elapsed: float = 0.0


def reason_of(leaf: Node, expansion: Expansion) -> Reason:
    """What an expansion came to."""
    if leaf.status is Status.SOLVED:
        return "solved"
    if leaf.status is Status.DEAD:
        return "dead"
    return "expanded" if expansion.grew else "no_expansion"


def record(turn: Turn, tree: Graph, attempts: int, stamp: Stamp) -> Iteration:
    expansion = turn.expansion or Expansion()
    leaf = turn.leaf
    path = tuple([node.id for node, _ in turn.path])
    return Iteration(
        epoch=stamp.epoch,
        at=stamp.at,
        iteration=stamp.iteration,
        goal=stamp.goal,
        agent=turn.agent,
        algotype=turn.algotype,
        path=path if leaf is None else (*path, leaf.id),
        node=None if leaf is None else leaf.id,
        reason=turn.reason,
        candidates=expansion.candidates,
        complete=expansion.complete,
        attempts=tuple(expansion.attempts),
        value=None if turn.expansion is None else round(expansion.value, 6),
        root_value=round(tree.root.value, 6),
        counters=Counters(len(tree.nodes), len(tree.edges), tree.solved, tree.dead, attempts),
        new=tuple(expansion.new),
        solved=tuple([node.id for node in expansion.changes.solved]),
        dead=tuple([node.id for node in expansion.changes.dead]),
        interventions=turn.interventions,
        tick=turn.tick,
        elapsed=stamp.elapsed,
    )


Stop = Literal["solved", "exhausted", "simulations", "time", "interrupted", "abort"]


class Runner(Protocol):
    """The centralized engine and the cell-view runner, as the loop sees them."""

    tree: Graph
    expander: Expander

    @property
    def finished(self) -> bool: ...

    def step(self) -> Turn: ...

    def pause(self) -> None:
        """Waits for the questions that are under way, before another search has its turn."""
        ...

    def drain(self) -> None:
        """Gives up what is under way, so that the tree is idle and no thread is left."""
        ...


class Sink(Protocol):
    """Where lines go: the trace of a run, or nowhere."""

    @property
    def epoch(self) -> int: ...

    def append(self, lines: list[TraceLine]) -> None: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop. Both count what earlier processes of the run have spent."""

    simulations: int = 200
    seconds: float | None = None


@dataclass(slots=True)
class Search:
    """One goal being searched. `iteration` counts over the whole run."""

    goal: int
    name: str
    statement: str
    limits: Limits
    sink: Sink
    recording: Recording
    iteration: int = 0
    stop_asked: Callable[[], bool] = lambda: False
    observe: Callable[[Iteration, Graph], None] = lambda line, tree: None
    turns: int = field(default=0, init=False)
    """The simulations of this search so far, also those of earlier processes."""
    _elapsed: float = field(default=0.0, init=False)
    _begun: float = field(default=0.0, init=False)
    _over: bool = field(default=False, init=False)

    def open(self, expander: Expander) -> None:
        """Writes down the goal, or compares it with what was written down."""
        line = GoalOpened(
            self.sink.epoch, timestamp(), self.goal, self.name, self.statement, expander.root
        )
        if self.recording.opened is None:
            self.sink.append([line])
        elif difference := first_difference(self.recording.opened, line):
            raise TraceError(f"goal {self.goal} is another one now: {difference}")

    def run(self, runner: Runner, share: int | None = None) -> Stop | None:
        """Simulate until the goal is settled, a limit is reached, or the user asks to stop.

        With `share` the search pauses after that many simulations in all and returns None; another
        call continues it. The clock of its time limit stands still in between.
        """
        most = self.limits.simulations if share is None else min(share, self.limits.simulations)
        self._begun = 0.0
        try:
            stop = self._run(runner, most)
            if stop == "simulations" and most < self.limits.simulations:
                runner.pause()
                return None
        except BaseException:
            self._over = True
            raise
        self._over = True
        return stop

    def is_over(self) -> bool:
        """Whether nobody waits for anything any more: for what was asked ahead of time."""
        return self._over or (self._begun > 0.0 and self._stop_before() is not None)

    def _run(self, runner: Runner, most: int) -> Stop:
        recorded = self.recording.iterations

        def known(done: int) -> Iteration | None:
            return recorded[done] if done < len(recorded) else None

        try:
            return step_until_finished(
                runner,
                most,
                lambda done: None if known(done) else self._stop_before(),
                lambda done, turn: self._write_down(turn, runner, known(done)),
                first=self.turns,
            )
        except AskingStopped:  # by `is_over`: the user asked to stop, or the time was over
            asked = self.limits.seconds is None or self.stop_asked()
            return "interrupted" if asked else "time"

    def _write_down(self, turn: Turn, runner: Runner, known: Iteration | None) -> None:
        """Appends an iteration, or compares it with the one that was written down."""
        self.iteration += 1
        self.turns += 1
        self._elapsed = self._clock() if known is None else known.elapsed
        line = self._line(turn, runner, known)
        if known is None:
            self.sink.append([line])
        elif difference := first_difference(known, line):
            raise TraceError(f"iteration {self.iteration} comes out differently: {difference}")
        self.observe(line, runner.tree)

    def _stop_before(self) -> Stop | None:
        """Why no new iteration may begin; the clock starts with the first one that is asked for."""
        if not self._begun:
            self._begun = time.monotonic() - self._elapsed
        if self.limits.seconds is not None and self._clock() >= self.limits.seconds:
            return "time"
        return "interrupted" if self.stop_asked() else None

    def _clock(self) -> float:
        return time.monotonic() - self._begun

    @property
    def elapsed(self) -> float:
        return self._elapsed

    def _line(self, turn: Turn, runner: Runner, known: Iteration | None) -> Iteration:
        stamp = Stamp(
            epoch=self.sink.epoch if known is None else known.epoch,
            at=timestamp() if known is None else known.at,
            iteration=self.iteration,
            goal=self.goal,
            elapsed=round(self._elapsed, 3),
        )
        return record(turn, runner.tree, runner.expander.attempts, stamp)


def step_until_finished(
    runner: Runner,
    most: int,
    may_not_begin: Callable[[int], Stop | None] = lambda done: None,
    observe: Callable[[int, Turn], None] = lambda done, turn: None,
    first: int = 0,
) -> Stop:
    """At most so many simulations, one after the other; says why there are no more.

    `first` of them were done by an earlier call. `may_not_begin` is asked before each, `observe`
    told of each, with how many were done before.
    """
    for done in range(first, most):
        if runner.finished:
            return _settled(runner)
        if stop := may_not_begin(done):
            return stop
        observe(done, runner.step())
    return _settled(runner) if runner.finished else "simulations"


def _settled(runner: Runner) -> Stop:
    match runner.tree.root.status:
        case Status.SOLVED:
            return "solved"
        case Status.DEAD:
            return "exhausted"
        case _:
            return "abort"
