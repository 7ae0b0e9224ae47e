"""Carrying out interventions: who and what is blocked now, who will be late, who is sent away.

Everything here acts on scheduling and reservation alone; the tree is not known in this module.
Draws depend on the seed, the purpose and the one concerned, never on the order of events.
"""

from __future__ import annotations

from math import floor, inf
from random import Random

from treewright.proving.cell_settings import CellSettings, Order
from treewright.proving.records import Intervention


class Block:
    """Holds a cell or a node until a tick, or for ever."""

    __slots__ = ("duration", "rng", "source", "unfreeze_prob", "until")

    def __init__(self, order: Order, now: int, source: str, rng: Random) -> None:
        self.duration = order.duration
        self.until = None if order.duration is None else now + order.duration
        self.unfreeze_prob = order.unfreeze_prob
        self.source = source
        self.rng = rng

    def lifted(self, now: int) -> bool:
        """Whether it has ended by now. When its time is up a draw decides; else it is longer."""
        while self.until is not None and self.duration is not None and self.until <= now:
            if self.unfreeze_prob >= 1.0 or self.rng.random() < self.unfreeze_prob:
                return True
            self.until += self.duration
        return False


class Damage:
    """The interventions of one run."""

    def __init__(self, settings: CellSettings, seed: int) -> None:
        self._settings = settings
        self._seed = seed
        self._orders = list(reversed(settings.orders()))
        self._cells: dict[int, Block] = {}
        self._nodes: dict[int, Block] = {}
        self._rules: list[tuple[Order, str]] = []
        self._judged: set[int] = set()
        self._late: dict[int, int] = {}
        self._sent_away: set[int] = set()
        self._draws = [self._rng("delay", agent) for agent in range(settings.agents)]
        self.next_order: float = self._orders[-1][0].at if self._orders else inf
        self.possible = bool(self._orders) or settings.delay_prob > 0.0
        self.on_nodes = False
        self.done: list[Intervention] = []

    def take_done(self) -> tuple[Intervention, ...]:
        """What was done since the last call, to be written down."""
        if not self.done:
            return ()
        done, self.done = tuple(self.done), []
        return done

    @property
    def nothing_will_change(self) -> bool:
        """Whether no order is left and every cell that is blocked is so for ever."""
        return not self._orders and all(block.until is None for block in self._cells.values())

    # -- orders ---------------------------------------------------------------------------

    def carry_out(self, now: int) -> None:
        """Everything that was ordered for a tick up to now."""
        while self._orders and self._orders[-1][0].at <= now:
            order, source = self._orders.pop()
            self._carry_out(order, source, now)
        self.next_order = self._orders[-1][0].at if self._orders else inf

    def _carry_out(self, order: Order, source: str, now: int) -> None:
        if order.node is not None or order.target == "nodes":
            self._on_nodes(order, source, now)
            return
        for agent in self._concerned(order, source):
            if order.kind == "block":
                block = Block(order, now, source, self._rng("unfreeze", "agent", agent, order.at))
                self._cells[agent] = block
                self._note("block", source, agent=agent, until=block.until)
            elif order.kind == "unblock":
                if self._cells.pop(agent, None) is not None:
                    self._note("unblock", source, agent=agent)
            elif order.kind == "delay":
                self._late[agent] = order.duration or 0
            else:
                self._sent_away.add(agent)

    def _on_nodes(self, order: Order, source: str, now: int) -> None:
        if order.kind == "block":
            self.on_nodes = True
            if order.node is None:
                self._rules.append((order, source))
                self._judged.clear()
            else:
                self._block_node(order.node, order, source, now)
        elif order.node is None:
            self._rules.clear()
            for node in sorted(self._nodes):
                self._unblock_node(node, source)
        elif order.node in self._nodes:
            self._unblock_node(order.node, source)

    def _concerned(self, order: Order, source: str) -> list[int]:
        if order.agent is not None:
            return [order.agent]
        count = floor((order.fraction or 0.0) * self._settings.agents + 0.5)
        rng = self._rng("whom", order.kind, order.at, source)
        return sorted(rng.sample(range(self._settings.agents), count))

    # -- cells ----------------------------------------------------------------------------

    def blocks_cell(self, agent: int, now: int) -> Block | None:
        block = self._cells.get(agent)
        if block is None:
            return None
        until = block.until
        if block.lifted(now):
            del self._cells[agent]
            self._note("unblock", block.source, agent=agent)
            return None
        if block.until != until:
            self._note("block", block.source, agent=agent, until=block.until)
        return block

    def lateness(self, agent: int, now: int) -> int:
        """How many ticks too late the cell will be with the reservation that it just made."""
        late = self._late.pop(agent, 0)
        source = "schedule"
        if not late and self._settings.delay_prob > 0.0:
            drawn = self._draws[agent].random() < self._settings.delay_prob
            late, source = (self._settings.delay_duration if drawn else 0), "settings"
        if late:
            self._note("delay", source, agent=agent, until=now + late)
        return late

    def sends_away(self, agent: int) -> bool:
        """Whether the cell was ordered to go elsewhere; asked once."""
        if agent not in self._sent_away:
            return False
        self._sent_away.discard(agent)
        return True

    def rerouted(self, agent: int, node: int, source: str) -> None:
        self._note("reroute", source, agent=agent, node=node)

    # -- nodes ----------------------------------------------------------------------------

    def blocks_node(self, node: int, now: int) -> Block | None:
        """Asked when a cell runs into a node; only then it shows whether a fraction meets it."""
        block = self._nodes.get(node)
        if block is not None:
            until = block.until
            if not block.lifted(now):
                if block.until != until:
                    self._note("block", block.source, node=node, until=block.until)
                return block
            self._unblock_node(node, block.source)
        if node not in self._judged:
            self._judged.add(node)
            for order, source in self._rules:
                drawn = self._rng("node", node, order.at, source).random()
                if node != 0 and drawn < (order.fraction or 0.0):
                    return self._block_node(node, order, source, now)
        return None

    def node_blocked_until(self, node: int) -> int | None:
        return self._nodes[node].until

    def _block_node(self, node: int, order: Order, source: str, now: int) -> Block:
        block = Block(order, now, source, self._rng("unfreeze", "node", node, order.at))
        self._nodes[node] = block
        self._note("block", source, node=node, until=block.until)
        return block

    def _unblock_node(self, node: int, source: str) -> None:
        del self._nodes[node]
        self._note("unblock", source, node=node)

    # -- helpers --------------------------------------------------------------------------

    def _note(
        self,
        kind: str,
        source: str,
        *,
        agent: int | None = None,
        node: int | None = None,
        until: int | None = None,
    ) -> None:
        self.done.append(Intervention(kind, agent, node, until, source))  # pyright: ignore[reportArgumentType]

    def _rng(self, *purpose: object) -> Random:
        return Random(":".join(str(part) for part in (self._seed, *purpose)))  # noqa: S311
