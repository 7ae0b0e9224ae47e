"""Measuring a candidate again, on configs that nobody selected on.

The best of K noisy measurements is too good on average. Before a candidate is
promoted it is swept on held-out configs and compared with its parent there.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel import artifacts, atomic
from treewright.kernel.artifacts import Artifact
from treewright.tree import events as ev
from treewright.tree import gate, scoring, simulation, sweep
from treewright.tree.config import Config
from treewright.tree.creation import heldout_ids
from treewright.tree.evaluation import PROTECTED_PATH_CHANGED, EvalRequest
from treewright.tree.model import Manifest, Recommendation
from treewright.tree.results import Results, read_results
from treewright.tree.sweep import CommandContext, ConfigRange
from treewright.tree.worktrees import Worktrees, tampered

_log = logging.getLogger("treewright")


@dataclass(frozen=True, slots=True)
class Confirmer:
    """Makes the held-out measurements of one run."""

    run_dir: Path
    config: Config
    worktrees: Worktrees
    owner: str = ""
    cancel: threading.Event | None = None

    def measure_node(self, manifest: Manifest, node_id: str) -> ev.HeldoutMeasured:
        """A node's own held-out results: from its baseline if it has them, else swept."""
        node = manifest.nodes[node_id]
        ids = heldout_ids(manifest)
        baseline = node.artifacts.baseline
        if baseline is not None:
            found = self._read(self.run_dir / baseline.path, manifest)
            if all(i in found.sound_ids for i in ids):
                return ev.HeldoutMeasured(node_id=node_id, artifact=baseline)
        name = f"{node_id}_heldout"
        if manifest.dry_run:
            text = simulation.baseline_csv(ids, self.config.metrics)
            return ev.HeldoutMeasured(node_id=node_id, artifact=self._keep_text(name, text))
        started = time.monotonic()
        _log.info("measuring %s on the held-out configs", node_id)
        log_dir = self.run_dir / "eval" / name
        log_dir.mkdir(parents=True, exist_ok=True)
        try:
            worktree = self.worktrees.add_candidate(name, node.commit)
            artifact, problem = self._sweep(manifest, worktree, node.commit, log_dir, name)
        finally:
            self.worktrees.remove_candidate(name)
        if artifact is None:
            raise sweep.SweepError(
                f"the held-out sweep of node {node_id} failed ({problem}); see {log_dir}"
            )
        found = self._read(self.run_dir / artifact.path, manifest)
        missing = [i for i in ids if i not in found.sound_ids]
        if missing:
            raise sweep.SweepError(
                f"the held-out sweep of node {node_id} has no sound row for config_id "
                f"{missing[0]} of {ids[0]} to {ids[-1]}; lower --confirm-configs if the sweep has "
                "no such config, or let it honour TREEWRIGHT_SWEEP_CONFIG_START and _LIMIT"
            )
        return ev.HeldoutMeasured(
            node_id=node_id, artifact=artifact, seconds=time.monotonic() - started
        )

    def confirm(self, manifest: Manifest, request: EvalRequest) -> ev.Confirmed:
        """Whether an evaluated candidate holds on the held-out configs."""
        evaluation = manifest.evaluations[request.eval_id]
        parent = manifest.nodes[evaluation.parent_node_id]
        assert evaluation.parent_relative is not None
        assert evaluation.candidate_commit is not None
        assert parent.artifacts.heldout is not None
        baseline = self.run_dir / parent.artifacts.heldout.path
        ids = heldout_ids(manifest)
        name = f"{request.eval_id}_heldout"
        started = time.monotonic()
        if manifest.dry_run:
            text = simulation.heldout_csv(request, baseline, ids)
            artifact, problem = self._keep_text(name, text), ""
        else:
            _log.info("  %s  measured again on the held-out configs", request.eval_id)
            worktree = self.worktrees.pristine_candidate(
                request.eval_id, evaluation.candidate_commit
            )
            log_dir = self.run_dir / evaluation.experiment_dir
            artifact, problem = self._sweep(
                manifest, worktree, evaluation.candidate_commit, log_dir, name
            )
        heldout = self._compare(manifest, artifact, baseline, problem)
        confirmation = gate.confirm(evaluation.parent_relative, heldout, ids[0], ids[-1] + 1)
        confirmation = msgspec.structs.replace(
            confirmation, results_csv=artifact, baseline_csv_path=parent.artifacts.heldout.path
        )
        seconds = time.monotonic() - started
        return ev.Confirmed(eval_id=request.eval_id, confirmation=confirmation, seconds=seconds)

    def _compare(
        self, manifest: Manifest, artifact: Artifact | None, baseline: Path, problem: str
    ) -> Recommendation:
        if artifact is None:
            return scoring.rejection([problem], manifest.confirm_configs)
        return scoring.compare(
            self._read(baseline, manifest),
            self._read(self.run_dir / artifact.path, manifest),
            heldout_ids(manifest),
            self.config.metrics,
            manifest.seed,
        ).recommendation

    def _sweep(
        self, manifest: Manifest, worktree: Path, commit: str, log_dir: Path, name: str
    ) -> tuple[Artifact | None, str]:
        ids = heldout_ids(manifest)
        context = CommandContext(
            worktree,
            log_dir,
            manifest.seed,
            self.owner,
            self.cancel,
            sweep.secret_variables(self.config),
            sweep.limits(self.config),
        )
        configs = ConfigRange(ids[0], ids[-1] + 1)
        done, results = sweep.run_sweep(self.config.sweep, context, configs, name)
        if done.cancelled:
            raise KeyboardInterrupt
        if not done.ok or not results.is_file():
            return None, "sweep_timeout" if done.timed_out else "sweep_failed"
        if tampered(self.worktrees.repo, worktree, commit, manifest.protected_paths):
            return None, PROTECTED_PATH_CHANGED
        kept = artifacts.keep(results, self.run_dir, f"{name}.csv", f"held-out sweep {name}")
        results.unlink()
        return kept, ""

    def _read(self, path: Path, manifest: Manifest) -> Results:
        ids = heldout_ids(manifest)
        names = [metric.name for metric in self.config.metrics]
        return read_results(path, names, ids.__contains__)

    def _keep_text(self, name: str, text: str) -> Artifact:
        path = self.run_dir / f"{name}.csv"
        atomic.write_text(path, text)
        try:
            return artifacts.keep(path, self.run_dir, f"{name}.csv", f"simulated {name}")
        finally:
            path.unlink()
