"""Results by git tree: the same code is not swept twice in a run.

All sweeps of a run have the same command, configs and seed, so the tree is the whole key. Only
recorded, sound and complete results are reused, and the outcome names their evaluation. If several
candidates have the same code at the same time, one is swept and the others wait for its results.
Workers on other machines get the results with their request and do not wait for each other.

With `reuse_results = true` results of earlier runs of the repository count too. An earlier run
counts if its sweep, tests, metrics, limits, seed and configs are the same, and its protected paths
too: with fewer of them a candidate may have cheated. Earlier runs are only read, and reused results
are copied into the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from treewright.kernel.errors import StorageError, TreewrightError
from treewright.kernel.procs.cancellation import Deadline
from treewright.kernel.storage import untrusted
from treewright.kernel.storage.artifacts import Artifact
from treewright.tree.config import Config
from treewright.tree.guard.baselines import DecidingFiles
from treewright.tree.records import layout, store
from treewright.tree.records.model import UNSET, Evaluation, Manifest

_MOST_SENT_BYTES = 256 << 10
_TICK_SECONDS = 0.1
_SAME = ("tests", "metrics", "limits", "slots", "isolation", "hidden_paths", "heldout_paths")
"""Keys of the configuration that results depend on, besides `sweep`."""


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


@dataclass(frozen=True, slots=True)
class EarlierResults:
    """Results by git tree, as `RUN/EVALUATION`, the run's directory and the file."""

    by_tree: dict[str, tuple[str, Path, Artifact]] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Path, manifest: Manifest) -> EarlierResults:
        """Return the results of all other runs in a directory; newer runs come first."""
        found: dict[str, tuple[str, Path, Artifact]] = {}
        earlier = [each for each in _others(runs, manifest) if _is_alike(each[1], manifest)]
        for run_dir, each in sorted(earlier, key=lambda pair: pair[1].created_at, reverse=True):
            for evaluation in each.evaluations.values():
                results = measured(evaluation)
                if results is not None and evaluation.candidate_tree:
                    source = f"{each.tree_run_id}/{evaluation.eval_id}"
                    found.setdefault(evaluation.candidate_tree, (source, run_dir, results))
        return cls(found)

    def find(self, tree: str) -> tuple[str, bytes] | None:
        if tree not in self.by_tree:
            return None
        source, run_dir, artifact = self.by_tree[tree]
        with contextlib.suppress(OSError):
            data = untrusted.read(run_dir / artifact.path, artifact.bytes, run_dir)
            if hashlib.sha256(data).hexdigest() == artifact.sha256:
                return source, data
        return None


@dataclass(slots=True)
class KnownResults:
    """The results of a run by git tree; one instance serves all workers of the run."""

    deciding: DecidingFiles
    earlier: EarlierResults = field(default_factory=EarlierResults)
    _by_tree: dict[str, tuple[str, Artifact]] = field(default_factory=dict)
    _measuring: dict[str, str] = field(default_factory=dict)
    _waiting: dict[str, dict[str, threading.Event]] = field(default_factory=dict)
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
        with self._lock:
            is_known = self._has(tree)
            if is_known or self._measuring.setdefault(tree, eval_id) == eval_id:
                return
            self._waiting.setdefault(tree, {})[eval_id] = has_turn
        with deadline.paused() as cancel:
            while not has_turn.wait(_TICK_SECONDS) and not cancel.is_set():
                pass

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
        for has_turn in released:
            has_turn.set()

    def _has(self, tree: str) -> bool:
        return tree in self._by_tree or tree in self.earlier.by_tree

    def sent(self) -> SentResults:
        """Return the newest results, then those of earlier runs, as many as fit into a request."""
        found: dict[str, tuple[str, bytes]] = {}
        room = _MOST_SENT_BYTES
        own = [(tree, artifact) for tree, (_, artifact) in reversed(self._by_tree.items())]
        earlier = [(tree, artifact) for tree, (_, _, artifact) in self.earlier.by_tree.items()]
        for tree, artifact in (*own, *earlier):
            room -= artifact.bytes
            if room < 0:
                break
            if tree not in found and (known := self.find(tree)) is not None:
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


def measured(evaluation: Evaluation) -> Artifact | None:
    """Return the complete results of an evaluation's own sweep, or None."""
    found = evaluation.parent_relative
    complete = found is not None and found.rows_used == found.rows_expected
    own = evaluation.results_from is UNSET and evaluation.error is None
    return evaluation.results_csv if complete and own else None


def _others(runs: Path, manifest: Manifest) -> Iterator[tuple[Path, Manifest]]:
    for run_dir in sorted(runs.iterdir()) if runs.is_dir() else ():
        if run_dir.name != manifest.tree_run_id and (run_dir / layout.EVENTS).is_file():
            with contextlib.suppress(TreewrightError, OSError):
                yield run_dir, store.load(run_dir)


def _is_alike(other: Manifest, manifest: Manifest) -> bool:
    if other.dry_run or other.sweep_config_limit != manifest.sweep_config_limit:
        return False
    with contextlib.suppress(msgspec.ValidationError):
        return _conditions(other) == _conditions(manifest)
    return False


def _conditions(manifest: Manifest) -> tuple[object, ...]:
    config = msgspec.convert(manifest.agent_config, type=Config)
    sweep = msgspec.structs.replace(config.sweep, reuse_results=False)
    measured_by = manifest.root_commit if sweep.checkout == "root" else ""
    guards = sorted(set(manifest.protected_paths)), manifest.environment.treewright
    return sweep, manifest.seed, measured_by, guards, *(getattr(config, n) for n in _SAME)
