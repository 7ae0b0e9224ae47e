"""The cell-view runner: a logical clock that orders what the cells do.

A cell reserves a way (virtual losses), waits for its turn in Lean, expands, backs up, releases.
Ticks and sequence numbers decide whose turn it is; an expansion takes a tick of the clock. Between
reservation and expansion others reserve and expand. Nothing depends on real time.
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
from treewright.search.andor.statistics import back_up, release


class Asking:
    """The requests under way, by node."""

    def __init__(self, expander: Expander, threads: int) -> None:
        self._expander = expander
        self._requests: dict[int, Future[Suggestions]] = {}
        self._pool = ThreadPoolExecutor(threads, "suggest")

    def ahead(self, node: Node) -> None:
        """Begins to ask for what the node will need."""
        round_number = self._expander.round_number(node)
        if round_number is not None:
            self._requests[node.id] = self._pool.submit(self._expander.ask, node, round_number)

    def expand(self, node: Node) -> Expansion:
        """The node's turn in Lean, with the answer that was asked for ahead."""
        expansion = Expansion()
        request = self._requests.pop(node.id, None)
        if request is not None:
            self._expander.propose(node, request.result(), expansion)
        self._expander.attempt(node, expansion)
        return expansion

    def forget(self, node: Node) -> None:
        """The node's turn has gone; nobody waits for the answer any more."""
        request = self._requests.pop(node.id, None)
        if request is not None:
            request.cancel()

    def settle(self) -> None:
        """Waits until every request has its answer, which is kept."""
        wait(self._requests.values())

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._requests.clear()


_DEFAULT = Mcts()


def make_runner(settings: Settings, expander: Expander) -> CellViewRunner:
    cells = settings.cells or CellSettings()
    if not isinstance(settings.policy, Mcts):
        raise UsageError("cells choose by their algotypes; another policy is for one searcher")
    return CellViewRunner(expander, cells, settings.seed, settings.policy)


class CellViewRunner:
    """Grows a tree by many cells. `step` gives one iteration, in the order of the clock."""

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
        self._asking = Asking(expander, settings.inflight) if expander.overlaps else None
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
        """Whether the root is settled, or nobody is left who could go on."""
        return self.aborted or self.tree.root.status is not Status.OPEN

    @property
    def in_flight(self) -> int:
        return len(self._flights)

    def step(self) -> StepReport:
        """The next iteration. The run must not be finished."""
        damage = self._damage
        while True:
            if damage.next_order <= self.tick:
                damage.carry_out(self.tick)
                self._wake_the_unblocked()
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
                return self._land(cell)
            if self._asleep.get(cell.agent) == sequence:  # else an order has waked it before
                self.tick = max(self.tick, tick)
                del self._asleep[cell.agent]
                self._ready.append(cell)

    def pause(self) -> None:
        """Waits for the answers of slow sources; cells keep their reservations."""
        if self._asking is not None:
            self._asking.settle()

    def drain(self) -> None:
        """Gives up what is under way: every reservation is released, every thread has ended."""
        for cell in self._flights.values():
            release(cell.path, cell.leaf)
        self._flights.clear()
        self._events.clear()
        if self._asking is not None:
            self._asking.close()

    # -- reserve --------------------------------------------------------------------------

    def _reserve(self, cell: Cell) -> StepReport | None:
        """A turn if something was done to the cell; else it holds a reservation, or waits."""
        damage, tick = self._damage, self.tick
        if damage.possible and (turn := self._kept_back(cell)) is not None:
            return turn
        leaf = cell.choose(tick, self._flights)
        if leaf is None:
            return self._hindered(cell)
        cell.reroutes = 0
        self._fruitless = 0
        self._flights[leaf.id] = cell
        if self._asking is not None:
            self._asking.ahead(leaf)
        late = damage.lateness(cell.agent, tick) if damage.possible else 0
        heappush(self._events, (tick + 1 + late, self._sequence, cell, True))
        self._sequence += 1
        return self._idle(cell, "delayed") if late else None

    def _kept_back(self, cell: Cell) -> StepReport | None:
        block = self._damage.blocks_cell(cell.agent, self.tick)
        if block is not None:
            self._sleep(cell, block.until)
            return self._idle(cell, "blocked")
        if self._damage.sends_away(cell.agent):
            return self._reroute(cell, cell.stand, "schedule")
        return None

    def _hindered(self, cell: Cell) -> StepReport | None:
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

    def _reroute(self, cell: Cell, node: Node, source: str) -> StepReport:
        self._damage.rerouted(cell.agent, node.id, source)
        cell.shun(node)
        self._ready.appendleft(cell)
        return self._idle(cell, "rerouted")

    def _sleep(self, cell: Cell, until: int | None) -> None:
        """Until a tick, or until an order wakes it."""
        self._asleep[cell.agent] = self._sequence
        if until is not None:
            heappush(self._events, (until, self._sequence, cell, False))
            self._sequence += 1

    def _wake_the_unblocked(self) -> None:
        for agent in sorted(self._asleep):
            if self._damage.blocks_cell(agent, self.tick) is None:
                del self._asleep[agent]
                self._ready.append(self.cells[agent])

    # -- expand, back up, release ---------------------------------------------------------

    def _land(self, cell: Cell) -> StepReport:
        """What a cell reserved is worked on; where others were quicker, it is given back."""
        leaf, path, tree = cell.leaf, cell.path, self.tree
        if tree.solved + tree.dead != cell.settled_then and (reason := _overtaken(cell)):
            if self._asking is not None:
                self._asking.forget(leaf)
            release(path, leaf)
            del self._flights[leaf.id]
            self._ready.append(cell)
            cell.go_home()
            return self._idle(cell, reason)
        expansion = (self._asking or self.expander).expand(leaf)
        back_up(path, leaf, expansion.value, self._policy, released=1)
        # Not before: a reservation that a fault in Lean leaves is released by `drain`.
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
            damage.take_done() if damage.done else (),
            self.tick,
        )

    # -- turns without work ---------------------------------------------------------------

    def _idle(self, cell: Cell, reason: Reason) -> StepReport:
        done = self._damage.take_done()
        return StepReport((), None, None, reason, cell.agent, cell.algotype, done, self.tick)

    def _abort(self) -> StepReport:
        self.aborted = True
        return StepReport((), None, None, "abort", None, None, self._damage.take_done(), self.tick)


def _overtaken(cell: Cell) -> Reason | None:
    """Whether others have settled the node, or the way to it, since it was reserved."""
    if cell.leaf.status:
        return "terminal" if cell.leaf.status is Status.SOLVED else "dead"
    if not is_settled(cell.path):
        return None
    solved = any(node.status is Status.SOLVED for node, _ in cell.path)
    return "terminal" if solved else "dead"
