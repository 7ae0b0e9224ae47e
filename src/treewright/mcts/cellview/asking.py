"""Asking the tactic source, ahead of time where it is slow.

A request may run in a thread from the reservation on; its answer is used when the node's turn in
Lean comes, whenever it arrived. An answer depends on the goals and the round only, so threads
cannot change what happens.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from treewright.mcts.expansion import Expander, Expansion
from treewright.mcts.prooftree import Node
from treewright.mcts.sources.base import Suggestions


class Asking:
    """The requests under way."""

    def __init__(self, expander: Expander, threads: int) -> None:
        self._expander = expander
        self._requests: dict[tuple[int, int], Future[Suggestions]] = {}
        self._pool = ThreadPoolExecutor(threads, "suggest") if expander.overlaps else None

    def ahead(self, node: Node) -> None:
        """Begins to ask for what the node will need, if the source is slow."""
        if self._pool is None:
            return
        round_number = self._expander.round_number(node)
        if round_number is not None:
            request = self._pool.submit(self._expander.ask, node, round_number)
            self._requests[node.id, round_number] = request

    def expand(self, node: Node) -> Expansion:
        """The node's turn in Lean, with the answer that was asked for ahead."""
        if self._pool is None:
            return self._expander.expand(node)
        expansion = Expansion()
        round_number = self._expander.round_number(node)
        if round_number is not None:
            request = self._requests.pop((node.id, round_number))
            self._expander.propose(node, request.result(), expansion)
        self._expander.attempt(node, expansion)
        return expansion

    def forget(self, node: Node) -> None:
        """The node's turn has gone; nobody waits for the answer any more."""
        round_number = self._expander.round_number(node)
        if round_number is not None and self._pool is not None:
            self._requests.pop((node.id, round_number)).cancel()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._requests.clear()
