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

from treewright.kernel import artifacts, untrusted
from treewright.tree.config import Config
from treewright.tree.deciding import gate, scoring
from treewright.tree.deciding.kept_files import DECIDING_FILE_CHANGED, DecidingFiles, KeptFile
from treewright.tree.deciding.results import UNREADABLE_RESULTS, Results, parse_results
from treewright.tree.evaluating import simulation, sweep
from treewright.tree.evaluating.evaluation import PROTECTED_PATH_CHANGED, EvalRequest
from treewright.tree.evaluating.sweep import CommandContext, ConfigRange
from treewright.tree.records import events as ev
from treewright.tree.records.model import Manifest, Recommendation
from treewright.tree.repository.worktrees import Worktrees, tampered
from treewright.tree.running.creation import heldout_ids

_log = logging.getLogger("treewright")


@dataclass(frozen=True, slots=True)
class Confirmer:
    """Makes the held-out measurements of one run."""

    run_dir: Path
    config: Config
    worktrees: Worktrees
    deciding: DecidingFiles
    owner: str = ""
    cancel: threading.Event | None = None

    def measure_node(self, manifest: Manifest, node_id: str) -> ev.HeldoutMeasured:
        """A node's own held-out results: from its baseline if it has them, else swept."""
        node = manifest.nodes[node_id]
        ids = heldout_ids(manifest)
        baseline = node.artifacts.baseline
        if baseline is not None:
            found = self._parse(self.deciding.read(baseline).data, manifest)
            if all(i in found.sound_ids for i in ids):
                return ev.HeldoutMeasured(node_id=node_id, artifact=baseline)
        name = f"{node_id}_heldout"
        if manifest.dry_run:
            text = simulation.baseline_csv(ids, self.config.metrics)
            kept = self._keep(name, text.encode(), "simulated")
            return ev.HeldoutMeasured(node_id=node_id, artifact=kept.artifact)
        started = time.monotonic()
        _log.info("measuring %s on the held-out configs", node_id)
        log_dir = self.run_dir / "eval" / name
        log_dir.mkdir(parents=True, exist_ok=True)
        try:
            worktree = self.worktrees.add_candidate(name, node.commit)
            swept, problem = self._sweep(manifest, worktree, node.commit, log_dir, name)
        finally:
            self.worktrees.remove_candidate(name)
        if swept is None:
            raise sweep.SweepError(
                f"the held-out sweep of node {node_id} failed ({problem}); see {log_dir}"
            )
        found = self._parse(swept.data, manifest)
        missing = [i for i in ids if i not in found.sound_ids]
        if missing:
            raise sweep.SweepError(
                f"the held-out sweep of node {node_id} has no sound row for config_id "
                f"{missing[0]} of {ids[0]} to {ids[-1]}; lower --confirm-configs if the sweep has "
                "no such config, or let it honour TREEWRIGHT_SWEEP_CONFIG_START and _LIMIT"
            )
        return ev.HeldoutMeasured(
            node_id=node_id, artifact=swept.artifact, seconds=time.monotonic() - started
        )

    def confirm(self, manifest: Manifest, request: EvalRequest) -> ev.Confirmed:
        """Whether an evaluated candidate holds on the held-out configs."""
        evaluation = manifest.evaluations[request.eval_id]
        parent = manifest.nodes[evaluation.parent_node_id]
        assert evaluation.parent_relative is not None
        assert evaluation.candidate_commit is not None
        assert parent.artifacts.heldout is not None
        baseline = self.deciding.read(parent.artifacts.heldout).data
        ids = heldout_ids(manifest)
        name = f"{request.eval_id}_heldout"
        started = time.monotonic()
        if manifest.dry_run:
            text = simulation.heldout_csv(request, baseline, ids)
            swept, problem = self._keep(name, text.encode(), "simulated"), ""
        else:
            _log.info("  %s  measured again on the held-out configs", request.eval_id)
            worktree = self.worktrees.pristine_candidate(
                request.eval_id, evaluation.candidate_commit
            )
            log_dir = self.run_dir / evaluation.experiment_dir
            swept, problem = self._sweep(
                manifest, worktree, evaluation.candidate_commit, log_dir, name
            )
        heldout = self._compare(manifest, swept, baseline, problem)
        confirmation = gate.confirm(evaluation.parent_relative, heldout, ids[0], ids[-1] + 1)
        confirmation = msgspec.structs.replace(
            confirmation,
            results_csv=swept.artifact if swept else None,
            baseline_csv_path=parent.artifacts.heldout.path,
        )
        seconds = time.monotonic() - started
        return ev.Confirmed(eval_id=request.eval_id, confirmation=confirmation, seconds=seconds)

    def _compare(
        self, manifest: Manifest, swept: KeptFile | None, baseline: bytes, problem: str
    ) -> Recommendation:
        if swept is None:
            return scoring.rejection([problem], manifest.confirm_configs)
        return scoring.compare(
            self._parse(baseline, manifest),
            self._parse(swept.data, manifest),
            heldout_ids(manifest),
            self.config.metrics,
            manifest.seed,
            manifest.scoring_rule,
        ).recommendation

    def _sweep(
        self, manifest: Manifest, worktree: Path, commit: str, log_dir: Path, name: str
    ) -> tuple[KeptFile | None, str]:
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
        if not done.ok:
            return None, "sweep_timeout" if done.timed_out else "sweep_failed"
        if tampered(self.worktrees.repo, worktree, commit, manifest.protected_paths):
            return None, PROTECTED_PATH_CHANGED
        if self.deciding.put_back():
            return None, DECIDING_FILE_CHANGED
        try:
            data = sweep.read_results_file(self.config.sweep, results, context)
        except untrusted.NotPlain:
            return None, UNREADABLE_RESULTS
        if data is None:
            return None, "sweep_failed"
        kept = self._keep(name, data, "held-out sweep")
        results.unlink()
        return kept, ""

    def _parse(self, data: bytes, manifest: Manifest) -> Results:
        ids = heldout_ids(manifest)
        names = [metric.name for metric in self.config.metrics]
        return parse_results(data, names, ids.__contains__)

    def _keep(self, name: str, data: bytes, how: str) -> KeptFile:
        return KeptFile(artifacts.keep(data, self.run_dir, f"{name}.csv", f"{how} {name}"), data)
