"""Asking a slow tactic source ahead of time.

A request runs in a thread from the reservation on; its answer is used when the node's turn in Lean
comes, whenever it arrived. An answer depends on the goals and the round only, so threads cannot
change what happens. A reserved node is nobody else's, so its round is still the same then.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait

from treewright.proving.expansion import Expander, Expansion
from treewright.proving.sources.base import Suggestions
from treewright.search.andor.graph import Node


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
