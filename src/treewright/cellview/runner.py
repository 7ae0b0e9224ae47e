"""The cell-view runner: a logical clock that orders what the cells do.

A cell reserves a way (virtual losses), waits for its turn in Lean, expands, backs up, releases.
Ticks and sequence numbers decide whose turn it is; an expansion takes a tick of the clock. Between
reservation and expansion others reserve and expand. Nothing depends on real time.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import inf

from treewright.cellview.asking import Asking
from treewright.cellview.cell import Cell, Step, is_settled
from treewright.cellview.damage import Damage
from treewright.kernel.errors import UsageError
from treewright.mcts.cell_settings import CellSettings
from treewright.mcts.expansion import Expander
from treewright.mcts.records import Reason
from treewright.mcts.settings import Settings
from treewright.mcts.turn import Turn, reason_of
from treewright.search.andor.graph import Node, Status
from treewright.search.andor.policies.mcts import Mcts
from treewright.search.andor.statistics import back_up, release, reserve

_DEFAULT = Mcts()


def make_runner(settings: Settings, expander: Expander) -> CellViewRunner:
    cells = settings.cells or CellSettings()
    if not isinstance(settings.policy, Mcts):
        raise UsageError("cells choose by their algotypes; another policy is for one searcher")
    return CellViewRunner(expander, cells, settings.seed, settings.policy)


class Flight:
    """A reservation: from choosing a node until its results are backed up."""

    __slots__ = ("cell", "leaf", "path", "settled_then")

    def __init__(self, cell: Cell, leaf: Node, path: list[Step], settled_then: int) -> None:
        self.cell = cell
        self.leaf = leaf
        self.path = path
        self.settled_then = settled_then


class CellViewRunner:
    """Grows a tree by many cells. `step` gives one iteration, in the order of the clock."""

    def __init__(
        self, expander: Expander, settings: CellSettings, seed: int, policy: Mcts = _DEFAULT
    ) -> None:
        self.expander = expander
        self.tree = expander.tree
        self.settings = settings
        self._policy = policy
        self.aborted = False
        self.tick = 0
        self._asking = Asking(expander, settings.inflight) if expander.overlaps else None
        self._damage = Damage(settings, seed)
        self.cells = [
            Cell(agent, expander, settings, policy, self._damage, seed)
            for agent in range(settings.agents)
        ]
        self._ready: deque[Cell] = deque(self.cells)
        self._events: list[tuple[int, int, int, Flight | None]] = []
        self._sequence = 0
        self._flights: dict[int, Flight] = {}
        self._taken: set[int] = set()
        self._asleep: dict[int, int] = {}
        self._waiting = False
        self._fruitless = 0

    @property
    def finished(self) -> bool:
        """Whether the root is settled, or nobody is left who could go on."""
        return self.aborted or self.tree.root.status is not Status.OPEN

    @property
    def in_flight(self) -> int:
        return len(self._flights)

    def step(self) -> Turn:
        """The next iteration. The run must not be finished."""
        damage = self._damage
        while True:
            if damage.next_order <= self.tick:
                damage.carry_out(self.tick)
                self._wake_the_unblocked()
                self._waiting = False
            if (turn := self._let_cells_reserve()) is not None:
                return turn
            if not self._events:
                if damage.next_order == inf:
                    return self._abort()
                self.tick = int(damage.next_order)
                continue
            if damage.next_order < self._events[0][0]:
                self.tick = int(damage.next_order)
                continue
            tick, sequence, agent, flight = heappop(self._events)
            self._waiting = False
            if flight is not None:
                self.tick = max(self.tick + 1, tick)
                return self._land(flight)
            if self._asleep.get(agent) == sequence:  # else an order has waked it before
                self.tick = max(self.tick, tick)
                del self._asleep[agent]
                self._ready.append(self.cells[agent])

    def drain(self) -> None:
        """Gives up what is under way: every reservation is released, every thread has ended."""
        for flight in self._flights.values():
            release(flight.path, flight.leaf)
        self._flights.clear()
        self._taken.clear()
        self._events.clear()
        if self._asking is not None:
            self._asking.close()

    # -- reserve --------------------------------------------------------------------------

    def _let_cells_reserve(self) -> Turn | None:
        while self._ready and not self._waiting and len(self._flights) < self.settings.inflight:
            cell = self._ready.popleft()
            if (turn := self._reserve(cell)) is not None:
                return turn
        return None

    def _reserve(self, cell: Cell) -> Turn | None:
        """A turn if something was done to the cell; else it holds a reservation, or waits."""
        if self._damage.possible and (turn := self._kept_back(cell)) is not None:
            return turn
        leaf = cell.choose(self.tick, self._taken)
        if leaf is None:
            return self._hindered(cell)
        cell.reroutes = 0
        self._fruitless = 0
        reserve(cell.path, leaf)
        self._taken.add(leaf.id)
        flight = Flight(cell, leaf, cell.path, self.tree.solved + self.tree.dead)
        self._flights[cell.agent] = flight
        if self._asking is not None:
            self._asking.ahead(leaf)
        late = self._damage.lateness(cell.agent, self.tick) if self._damage.possible else 0
        self._at(self.tick + 1 + late, cell, flight)
        return self._idle(cell, "delayed") if late else None

    def _kept_back(self, cell: Cell) -> Turn | None:
        block = self._damage.blocks_cell(cell.agent, self.tick)
        if block is not None:
            self._sleep(cell, block.until)
            return self._idle(cell, "blocked")
        if self._damage.sends_away(cell.agent):
            return self._reroute(cell, cell.stand, "schedule")
        return None

    def _hindered(self, cell: Cell) -> Turn | None:
        """The cell found nothing to reserve: all is taken, or something blocked is in the way."""
        obstacle = cell.obstacle
        if obstacle is None and self._flights:
            cell.go_home()
            self._ready.append(cell)
            self._waiting = True
            return None
        if obstacle is not None and cell.reroutes < self.settings.reroute_max:
            return self._reroute(cell, obstacle, "settings")
        until = None if obstacle is None else self._damage.node_blocked_until(obstacle.id)
        if until is None and not self._flights and self._damage.nothing_will_change:
            self._fruitless += 1
            if self._fruitless >= self.settings.give_up * len(self.cells):
                return self._abort()
        cell.forget_detours()
        cell.go_home()
        self._sleep(cell, self.tick + self.settings.block_duration if until is None else until)
        return self._idle(cell, "blocked")

    def _reroute(self, cell: Cell, node: Node, source: str) -> Turn:
        self._damage.rerouted(cell.agent, node.id, source)
        cell.shun(node)
        self._ready.appendleft(cell)
        return self._idle(cell, "rerouted")

    def _sleep(self, cell: Cell, until: int | None) -> None:
        """Until a tick, or until an order wakes it."""
        self._asleep[cell.agent] = self._sequence
        if until is not None:
            self._at(until, cell, None)

    def _wake_the_unblocked(self) -> None:
        for agent in sorted(self._asleep):
            if self._damage.blocks_cell(agent, self.tick) is None:
                del self._asleep[agent]
                self._ready.append(self.cells[agent])

    def _at(self, tick: int, cell: Cell, flight: Flight | None) -> None:
        heappush(self._events, (tick, self._sequence, cell.agent, flight))
        self._sequence += 1

    # -- expand, back up, release ---------------------------------------------------------

    def _land(self, flight: Flight) -> Turn:
        cell, leaf, path = flight.cell, flight.leaf, flight.path
        if (reason := self._overtaken(flight)) is not None:
            if self._asking is not None:
                self._asking.forget(leaf)
            release(path, leaf)
            self._end(flight)
            cell.go_home()
            return self._idle(cell, reason)
        source = self._asking or self.expander
        expansion = source.expand(leaf)
        back_up(path, leaf, expansion.value, self._policy, released=1)
        self._end(flight)
        cell.learn(leaf, self.tick)
        return Turn(
            path,
            leaf,
            expansion,
            reason_of(leaf, expansion),
            cell.agent,
            cell.algotype,
            self._damage.take_done(),
            self.tick,
        )

    def _overtaken(self, flight: Flight) -> Reason | None:
        """Whether others have settled the node, or the way to it, since it was reserved."""
        if self.tree.solved + self.tree.dead == flight.settled_then:
            return None
        if flight.leaf.status:
            return "terminal" if flight.leaf.status is Status.SOLVED else "dead"
        if not is_settled(flight.path):
            return None
        solved = any(node.status is Status.SOLVED for node, _ in flight.path)
        return "terminal" if solved else "dead"

    def _end(self, flight: Flight) -> None:
        self._taken.discard(flight.leaf.id)
        del self._flights[flight.cell.agent]
        self._ready.append(flight.cell)

    # -- turns without work ---------------------------------------------------------------

    def _idle(self, cell: Cell, reason: Reason) -> Turn:
        done = self._damage.take_done()
        return Turn((), None, None, reason, cell.agent, cell.algotype, done, self.tick)

    def _abort(self) -> Turn:
        self.aborted = True
        return Turn((), None, None, "abort", None, None, self._damage.take_done(), self.tick)
