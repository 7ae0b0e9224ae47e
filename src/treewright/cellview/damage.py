"""Interventions in effect: which cells and nodes are blocked, delayed or rerouted.

They act only on scheduling and reservations; this module does not know the graph. Draws depend on
the seed, the purpose and the cell or node, never on the order of events.
"""

from __future__ import annotations

from math import floor, inf
from random import Random

from treewright.proving.cell_settings import CellSettings, PlannedIntervention
from treewright.proving.records import Intervention


class Block:
    """A block on a cell or a node, until a tick or for ever."""

    __slots__ = ("duration", "rng", "source", "unfreeze_prob", "until")

    def __init__(self, order: PlannedIntervention, now: int, source: str, rng: Random) -> None:
        self.duration = order.duration
        self.until = None if order.duration is None else now + order.duration
        self.unfreeze_prob = order.unfreeze_prob
        self.source = source
        self.rng = rng

    def lifted(self, now: int) -> bool:
        """Return whether the block has ended. At its end a draw decides whether it is prolonged."""
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
        self._node_rules: list[tuple[PlannedIntervention, str]] = []
        self._drawn_nodes: set[int] = set()
        self._delays: dict[int, int] = {}
        self._rerouted_agents: set[int] = set()
        self._delay_draws = [self._rng("delay", agent) for agent in range(settings.agents)]
        self.next_order: float = self._orders[-1][0].at if self._orders else inf
        self.possible = bool(self._orders) or settings.delay_prob > 0.0
        self.on_nodes = False
        self.done: list[Intervention] = []

    def take_events(self) -> tuple[Intervention, ...]:
        """Return the events since the last call, to be recorded."""
        if not self.done:
            return ()
        done, self.done = tuple(self.done), []
        return done

    @property
    def is_frozen_for_ever(self) -> bool:
        """Whether no intervention is left and every blocked cell is blocked for ever."""
        return not self._orders and all(block.until is None for block in self._cells.values())

    # -- orders ---------------------------------------------------------------------------

    def carry_out(self, now: int) -> None:
        """Carry out all interventions that are planned up to a tick."""
        while self._orders and self._orders[-1][0].at <= now:
            order, source = self._orders.pop()
            self._carry_out(order, source, now)
        self.next_order = self._orders[-1][0].at if self._orders else inf

    def _carry_out(self, order: PlannedIntervention, source: str, now: int) -> None:
        if order.node is not None or order.target == "nodes":
            self._on_nodes(order, source, now)
            return
        for agent in self._select_agents(order, source):
            if order.kind == "block":
                block = Block(order, now, source, self._rng("unfreeze", "agent", agent, order.at))
                self._cells[agent] = block
                self._record("block", source, agent=agent, until=block.until)
            elif order.kind == "unblock":
                if self._cells.pop(agent, None) is not None:
                    self._record("unblock", source, agent=agent)
            elif order.kind == "delay":
                self._delays[agent] = order.duration or 0
            else:
                self._rerouted_agents.add(agent)

    def _on_nodes(self, order: PlannedIntervention, source: str, now: int) -> None:
        if order.kind == "block":
            self.on_nodes = True
            if order.node is None:
                self._node_rules.append((order, source))
                self._drawn_nodes.clear()
            else:
                self._block_node(order.node, order, source, now)
        elif order.node is None:
            self._node_rules.clear()
            for node in sorted(self._nodes):
                self._unblock_node(node, source)
        elif order.node in self._nodes:
            self._unblock_node(order.node, source)

    def _select_agents(self, order: PlannedIntervention, source: str) -> list[int]:
        if order.agent is not None:
            return [order.agent]
        count = floor((order.fraction or 0.0) * self._settings.agents + 0.5)
        rng = self._rng("whom", order.kind, order.at, source)
        return sorted(rng.sample(range(self._settings.agents), count))

    # -- cells ----------------------------------------------------------------------------

    def find_cell_block(self, agent: int, now: int) -> Block | None:
        """Return the block on a cell; None if there is none, or if it ended by now."""
        block = self._cells.get(agent)
        if block is None:
            return None
        until = block.until
        if block.lifted(now):
            del self._cells[agent]
            self._record("unblock", block.source, agent=agent)
            return None
        if block.until != until:
            self._record("block", block.source, agent=agent, until=block.until)
        return block

    def draw_delay(self, agent: int, now: int) -> int:
        """Return by how many ticks the cell's new reservation is delayed."""
        late = self._delays.pop(agent, 0)
        source = "schedule"
        if not late and self._settings.delay_prob > 0.0:
            drawn = self._delay_draws[agent].random() < self._settings.delay_prob
            late, source = (self._settings.delay_duration if drawn else 0), "settings"
        if late:
            self._record("delay", source, agent=agent, until=now + late)
        return late

    def take_reroute(self, agent: int) -> bool:
        """Return whether the cell was ordered to go elsewhere; the order is then used up."""
        if agent not in self._rerouted_agents:
            return False
        self._rerouted_agents.discard(agent)
        return True

    def rerouted(self, agent: int, node: int, source: str) -> None:
        """Record that a cell goes elsewhere."""
        self._record("reroute", source, agent=agent, node=node)

    # -- nodes ----------------------------------------------------------------------------

    def find_node_block(self, node: int, now: int) -> Block | None:
        """Return the block on a node, if there is one.

        Whether a fraction of nodes includes a node is drawn when a cell first reaches it.
        """
        block = self._nodes.get(node)
        if block is not None:
            until = block.until
            if not block.lifted(now):
                if block.until != until:
                    self._record("block", block.source, node=node, until=block.until)
                return block
            self._unblock_node(node, block.source)
        if node not in self._drawn_nodes:
            self._drawn_nodes.add(node)
            for order, source in self._node_rules:
                drawn = self._rng("node", node, order.at, source).random()
                if node != 0 and drawn < (order.fraction or 0.0):
                    return self._block_node(node, order, source, now)
        return None

    def node_blocked_until(self, node: int) -> int | None:
        """Return the tick at which the block on a node ends; None if it never does."""
        return self._nodes[node].until

    def _block_node(self, node: int, order: PlannedIntervention, source: str, now: int) -> Block:
        block = Block(order, now, source, self._rng("unfreeze", "node", node, order.at))
        self._nodes[node] = block
        self._record("block", source, node=node, until=block.until)
        return block

    def _unblock_node(self, node: int, source: str) -> None:
        del self._nodes[node]
        self._record("unblock", source, node=node)

    # -- helpers --------------------------------------------------------------------------

    def _record(
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
