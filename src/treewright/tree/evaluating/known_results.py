"""Results by git tree: the same code is not swept twice in a run.

All sweeps of a run have the same command, configs and seed, so the tree is the whole key. Only
recorded, sound and complete results are reused, and the outcome names their evaluation. If several
candidates have the same code at the same time, one is swept and the others wait for its results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from treewright.kernel.errors import StorageError
from treewright.kernel.procs.cancellation import Deadline
from treewright.kernel.storage.artifacts import Artifact
from treewright.tree.evaluating.earlier_results import EarlierResults, measured
from treewright.tree.guard.baselines import DecidingFiles
from treewright.tree.records.model import Evaluation, Manifest

_MOST_SENT_BYTES = 256 << 10


_TICK_SECONDS = 0.1


class Known(Protocol):
    def wait_for_turn(self, tree: str, eval_id: str, deadline: Deadline) -> None:
        """Wait until no other evaluation measures this code, or until cancelled.

        The waiting time does not count against the evaluation's limit.
        """
        ...

    def find(self, tree: str) -> tuple[str, bytes] | None:
        """Return the source and the bytes of results for this code, or None to measure it."""
        ...


class SentResults(msgspec.Struct, frozen=True):
    """Results that are sent along with a request to another machine."""

    by_tree: dict[str, tuple[str, bytes]] = {}

    def wait_for_turn(self, tree: str, eval_id: str, deadline: Deadline) -> None:
        """Return at once: a worker does not know the evaluations of other workers."""

    def find(self, tree: str) -> tuple[str, bytes] | None:
        return self.by_tree.get(tree)


@dataclass(slots=True)
class KnownResults:
    """The results of a run by git tree; one instance serves all workers of the run."""

    deciding: DecidingFiles
    earlier: EarlierResults = field(default_factory=EarlierResults)
    _by_tree: dict[str, tuple[str, Artifact]] = field(default_factory=dict)
    _measuring: dict[str, str] = field(default_factory=dict)
    _waiting: dict[str, dict[str, Callable[[], None]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(
        cls,
        manifest: Manifest,
        deciding: DecidingFiles,
        earlier: EarlierResults | None = None,
    ) -> KnownResults:
        """Return the results of a run: its baseline, unless that is in doubt, and evaluations."""
        known = cls(deciding, earlier or EarlierResults())
        for node in manifest.nodes.values():
            baseline = node.artifacts.baseline
            if node.parent_node_id is None and baseline and manifest.baseline_doubt is None:
                known._by_tree[node.tree] = (node.node_id, baseline)
        known.add(manifest.evaluations.values())
        return known

    def add(self, evaluations: Iterable[Evaluation]) -> None:
        """Add evaluations with complete results of their own sweep."""
        for evaluation in evaluations:
            results = measured(evaluation)
            if results and evaluation.candidate_tree:
                self._by_tree.setdefault(evaluation.candidate_tree, (evaluation.eval_id, results))

    def wait_for_turn(self, tree: str, eval_id: str, deadline: Deadline) -> None:
        has_turn = threading.Event()
        self.claim(tree, eval_id, has_turn.set)
        with deadline.paused() as cancel:
            while not has_turn.wait(_TICK_SECONDS) and not cancel.is_set():
                pass

    def claim(self, tree: str, eval_id: str, ready: Callable[[], None]) -> None:
        """Call `ready` when an evaluation may go on.

        That is at once if there are results or no other evaluation measures this code, otherwise
        when that evaluation is over.
        """
        with self._lock:
            is_known = self._has(tree)
            if not is_known and self._measuring.setdefault(tree, eval_id) != eval_id:
                self._waiting.setdefault(tree, {})[eval_id] = ready
                return
        ready()

    def over(self, eval_id: str) -> None:
        """Release the evaluations that wait for a recorded one.

        If it left no results, the waiting evaluation with the lowest id measures the code.
        """
        with self._lock:
            for line in self._waiting.values():
                line.pop(eval_id, None)
            tree = next((tree for tree, who in self._measuring.items() if who == eval_id), None)
            if tree is None:
                return
            del self._measuring[tree]
            line = self._waiting.pop(tree, {})
            if self._has(tree) or not line:
                released = list(line.values())
            else:
                first = min(line)
                released = [line.pop(first)]
                self._measuring[tree], self._waiting[tree] = first, line
        for ready in released:
            ready()

    def _has(self, tree: str) -> bool:
        return tree in self._by_tree or tree in self.earlier.by_tree

    def sent(self) -> SentResults:
        """Return the newest results, as many as fit into a request."""
        found: dict[str, tuple[str, bytes]] = {}
        room = _MOST_SENT_BYTES
        for tree, (_, artifact) in reversed(self._by_tree.items()):
            room -= artifact.bytes
            if room < 0:
                break
            if (known := self.find(tree)) is not None:
                found[tree] = known
        return SentResults(found)

    def find(self, tree: str) -> tuple[str, bytes] | None:
        known = self._by_tree.get(tree)
        if known is None:
            return self.earlier.find(tree)
        source, artifact = known
        try:
            return source, self.deciding.read(artifact).data
        except StorageError:
            return None
