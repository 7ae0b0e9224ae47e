"""Results of the same code in earlier runs of the repository, with `reuse_results = true`.

An earlier run counts if its sweep, tests, metrics, limits, seed and configs are the same, and its
protected paths too: with fewer of them a candidate may have cheated. Earlier runs are only read,
and reused results are copied into the run.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from treewright.kernel.errors import TreewrightError
from treewright.kernel.storage import untrusted
from treewright.kernel.storage.artifacts import Artifact
from treewright.tree.config import Config
from treewright.tree.records import layout, store
from treewright.tree.records.model import UNSET, Evaluation, Manifest

_SAME = ("tests", "metrics", "limits", "slots", "isolation", "hidden_paths", "heldout_paths")
"""Keys of the configuration that results depend on, besides `sweep`."""


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
