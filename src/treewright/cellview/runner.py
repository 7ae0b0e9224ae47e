"""The cell-view runner: a logical clock that orders the work of the cells.

A cell reserves a way (virtual losses), waits for its time in Lean, expands, backs up and releases.
Ticks and sequence numbers decide the order; an expansion takes one tick. Between the reservation
and the expansion of a cell, other cells reserve and expand. Nothing depends on real time.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from heapq import heappop, heappush
from math import inf

from treewright.cellview.cell import Cell, is_settled
from treewright.cellview.damage import Damage
from treewright.kernel.errors import UsageError
from treewright.proving.cell_settings import CellSettings
from treewright.proving.expansion import Expander, Expansion
from treewright.proving.records import Reason
from treewright.proving.search import StepReport, expansion_reason
from treewright.proving.settings import Settings
from treewright.proving.tactics.source import Suggestions
from treewright.search.andor.graph import Node, Status
from treewright.search.andor.policies.mcts import Mcts
from treewright.search.andor.visits import back_up, release


class SuggestionRequests:
    """Requests to a slow tactic source, made ahead of time in threads.

    A request begins with the reservation of its node; the answer is used when the node is expanded.
    An answer depends only on the goals and the round, so threads cannot change the outcome: a
    reserved node belongs to one cell, and its round stays the same.
    """

    def __init__(self, expander: Expander, threads: int) -> None:
        self._expander = expander
        self._requests: dict[int, Future[Suggestions]] = {}
        self._pool = ThreadPoolExecutor(threads, "suggest")

    def ahead(self, node: Node) -> None:
        """Begin to ask for the suggestions that a node will need."""
        round_number = self._expander.round_number(node)
        if round_number is not None:
            self._requests[node.id] = self._pool.submit(self._expander.ask, node, round_number)

    def expand(self, node: Node) -> Expansion:
        """Expand a node with the answer that was asked for."""
        expansion = Expansion()
        request = self._requests.pop(node.id, None)
        if request is not None:
            self._expander.propose(node, request.result(), expansion)
        self._expander.attempt(node, expansion)
        return expansion

    def forget(self, node: Node) -> None:
        """Drop the request for a node that is not expanded."""
        request = self._requests.pop(node.id, None)
        if request is not None:
            request.cancel()

    def settle(self) -> None:
        """Wait until every request has its answer; the answers are kept."""
        wait(self._requests.values())

    def close(self) -> None:
        """End the threads, and drop the requests that have not begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._requests.clear()


_DEFAULT = Mcts()


def make_runner(settings: Settings, expander: Expander) -> CellViewRunner:
    """Return the runner of the mode `distributed`.

    Raises UsageError for a policy other than Mcts.
    """
    cells = settings.cells or CellSettings()
    if not isinstance(settings.policy, Mcts):
        raise UsageError("cells choose by their algotypes; another policy is for one searcher")
    return CellViewRunner(expander, cells, settings.seed, settings.policy)


class CellViewRunner:
    """A runner with many cells. `step` gives one iteration, in the order of the clock."""

    def __init__(
        self, expander: Expander, settings: CellSettings, seed: int, policy: Mcts = _DEFAULT
    ) -> None:
        self.expander = expander
        self.tree = expander.tree
        self.settings = settings
        self._policy = policy
        self._inflight = settings.inflight
        self.aborted = False
        self.tick = 0
        self._requests = (
            SuggestionRequests(expander, settings.inflight) if expander.overlaps else None
        )
        self._damage = Damage(settings, seed)
        self.cells = [
            Cell(agent, expander, settings, policy, self._damage, seed)
            for agent in range(settings.agents)
        ]
        self._ready: deque[Cell] = deque(self.cells)
        self._events: list[tuple[int, int, Cell, bool]] = []
        self._sequence = 0
        self._flights: dict[int, Cell] = {}
        """The cells that hold a reservation, by the node they will work on."""
        self._asleep: dict[int, int] = {}
        self._waiting = False
        self._fruitless = 0

    @property
    def finished(self) -> bool:
        """Whether the root is settled, or no cell can go on."""
        return self.aborted or self.tree.root.status is not Status.OPEN

    @property
    def in_flight(self) -> int:
        """The number of cells that hold a reservation."""
        return len(self._flights)

    def step(self) -> StepReport:
        """Make the next iteration. The run must not be finished."""
        damage = self._damage
        while True:
            if damage.next_order <= self.tick:
                damage.carry_out(self.tick)
                self._wake_unblocked()
                self._waiting = False
            while self._ready and not self._waiting and len(self._flights) < self._inflight:
                if (turn := self._reserve(self._ready.popleft())) is not None:
                    return turn
            if not self._events:
                if damage.next_order == inf:
                    return self._abort()
                self.tick = int(damage.next_order)
                continue
            if damage.next_order < self._events[0][0]:
                self.tick = int(damage.next_order)
                continue
            tick, sequence, cell, lands = heappop(self._events)
            self._waiting = False
            if lands:
                self.tick = tick if tick > self.tick else self.tick + 1
                return self._work_on_reservation(cell)
            if (
                self._asleep.get(cell.agent) == sequence
            ):  # otherwise an intervention woke the cell before
                self.tick = max(self.tick, tick)
                del self._asleep[cell.agent]
                self._ready.append(cell)

    def pause(self) -> None:
        """Wait for the answers of slow sources. Cells keep their reservations."""
        if self._requests is not None:
            self._requests.settle()

    def drain(self) -> None:
        """Release every reservation and end every thread."""
        for cell in self._flights.values():
            release(cell.path, cell.leaf)
        self._flights.clear()
        self._events.clear()
        if self._requests is not None:
            self._requests.close()

    # -- reserve --------------------------------------------------------------------------

    def _reserve(self, cell: Cell) -> StepReport | None:
        """Let a cell reserve a leaf. Returns a report if an intervention met the cell."""
        damage, tick = self._damage, self.tick
        if damage.possible and (turn := self._intervene(cell)) is not None:
            return turn
        leaf = cell.choose(tick, self._flights)
        if leaf is None:
            return self._handle_no_leaf(cell)
        cell.reroutes = 0
        self._fruitless = 0
        self._flights[leaf.id] = cell
        if self._requests is not None:
            self._requests.ahead(leaf)
        late = damage.draw_delay(cell.agent, tick) if damage.possible else 0
        heappush(self._events, (tick + 1 + late, self._sequence, cell, True))
        self._sequence += 1
        return self._idle_report(cell, "delayed") if late else None

    def _intervene(self, cell: Cell) -> StepReport | None:
        block = self._damage.find_cell_block(cell.agent, self.tick)
        if block is not None:
            self._sleep(cell, block.until)
            return self._idle_report(cell, "blocked")
        if self._damage.take_reroute(cell.agent):
            return self._reroute(cell, cell.position, "schedule")
        return None

    def _handle_no_leaf(self, cell: Cell) -> StepReport | None:
        """Handle a cell that found no leaf: all are taken, or a blocked node is in the way."""
        obstacle = cell.obstacle
        if obstacle is None and self._flights:
            cell.return_to_root()
            self._ready.append(cell)
            self._waiting = True
            return None
        if obstacle is not None and cell.reroutes < self.settings.reroute_max:
            return self._reroute(cell, obstacle, "settings")
        until = None if obstacle is None else self._damage.node_blocked_until(obstacle.id)
        if until is None and not self._flights and self._damage.is_frozen_for_ever:
            self._fruitless += 1
            if self._fruitless >= self.settings.give_up * len(self.cells):
                return self._abort()
        cell.forget_detours()
        cell.return_to_root()
        self._sleep(cell, self.tick + self.settings.block_duration if until is None else until)
        return self._idle_report(cell, "blocked")

    def _reroute(self, cell: Cell, node: Node, source: str) -> StepReport:
        self._damage.rerouted(cell.agent, node.id, source)
        cell.avoid(node)
        self._ready.appendleft(cell)
        return self._idle_report(cell, "rerouted")

    def _sleep(self, cell: Cell, until: int | None) -> None:
        """Let a cell sleep until a tick, or until an intervention wakes it."""
        self._asleep[cell.agent] = self._sequence
        if until is not None:
            heappush(self._events, (until, self._sequence, cell, False))
            self._sequence += 1

    def _wake_unblocked(self) -> None:
        for agent in sorted(self._asleep):
            if self._damage.find_cell_block(agent, self.tick) is None:
                del self._asleep[agent]
                self._ready.append(self.cells[agent])

    # -- expand, back up, release ---------------------------------------------------------

    def _work_on_reservation(self, cell: Cell) -> StepReport:
        """Expand a reserved leaf; release it if other cells have settled it meanwhile."""
        leaf, path, tree = cell.leaf, cell.path, self.tree
        if tree.solved + tree.dead != cell.settled_count and (reason := _settled_meanwhile(cell)):
            if self._requests is not None:
                self._requests.forget(leaf)
            release(path, leaf)
            del self._flights[leaf.id]
            self._ready.append(cell)
            cell.return_to_root()
            return self._idle_report(cell, reason)
        expansion = (self._requests or self.expander).expand(leaf)
        back_up(path, leaf, expansion.value, self._policy, released=1)
        # Only now: after a fault in Lean, `drain` must still find the reservation.
        del self._flights[leaf.id]
        self._ready.append(cell)
        cell.learn(leaf, self.tick)
        damage = self._damage
        return StepReport(
            path,
            leaf,
            expansion,
            expansion_reason(leaf, expansion),
            cell.agent,
            cell.algotype,
            damage.take_events() if damage.done else (),
            self.tick,
        )

    # -- iterations without work ---------------------------------------------------------------

    def _idle_report(self, cell: Cell, reason: Reason) -> StepReport:
        done = self._damage.take_events()
        return StepReport((), None, None, reason, cell.agent, cell.algotype, done, self.tick)

    def _abort(self) -> StepReport:
        self.aborted = True
        return StepReport(
            (), None, None, "abort", None, None, self._damage.take_events(), self.tick
        )


def _settled_meanwhile(cell: Cell) -> Reason | None:
    """Return the reason if other cells settled the leaf, or the way to it, meanwhile."""
    if cell.leaf.status:
        return "terminal" if cell.leaf.status is Status.SOLVED else "dead"
    if not is_settled(cell.path):
        return None
    solved = any(node.status is Status.SOLVED for node, _ in cell.path)
    return "terminal" if solved else "dead"
