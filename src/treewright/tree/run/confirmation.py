"""Confirmation of a candidate on held-out configs.

The best of K noisy measurements is too good on average. Before a candidate is promoted, it is swept
on configs that took no part in its selection, and compared with its parent there. The sweep
(`evaluating.measuring`) runs on the executor; this module makes its request and judges its results.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.tree.config import Config
from treewright.tree.deciding import objectives, promotion, scoring
from treewright.tree.deciding.results import Results
from treewright.tree.evaluating import contexts, simulation
from treewright.tree.evaluating.measuring import measure_heldout
from treewright.tree.evaluating.request import (
    CANCELLED,
    HeldoutOutcome,
    HeldoutRequest,
    keep_heldout,
)
from treewright.tree.guard.baselines import DecidingFiles, KeptFile
from treewright.tree.records import events as ev
from treewright.tree.records import layout
from treewright.tree.records.model import Evaluation, Manifest, Node, Recommendation
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.run.creation import heldout_ids

_log = logging.getLogger("treewright")


@dataclass(frozen=True, slots=True)
class Confirmer:
    """Makes the requests for the held-out sweeps of one run, and judges their results."""

    worktrees: Worktrees
    config: Config
    deciding_files: DecidingFiles
    owner: str = ""
    cancel: threading.Event | None = None

    @property
    def run_dir(self) -> Path:
        return self.worktrees.run_dir

    def measure_node(self, manifest: Manifest, node_id: str) -> ev.HeldoutMeasured:
        """Return the held-out results of a node: from its baseline if it has them, else swept."""
        node = manifest.nodes[node_id]
        ids = heldout_ids(manifest)
        baseline = node.artifacts.baseline
        if baseline is not None:
            found = self._parse(self.deciding_files.read(baseline).data, manifest)
            if all(i in found.sound_ids for i in ids):
                return ev.HeldoutMeasured(node_id=node_id, artifact=baseline)
        name = layout.heldout(node_id)
        log_dir = layout.sweep_directory(name)
        request = self._request(manifest, name, 1, node, node.commit, log_dir)
        if manifest.dry_run:
            text = simulation.baseline_csv(ids, self.config.metrics)
            kept = keep_heldout(request, text.encode(), "simulated")
            return ev.HeldoutMeasured(node_id=node_id, artifact=kept.artifact)
        _log.info("measuring %s on the held-out configs", node_id)
        try:
            measured = measure_heldout(request, self.cancel, self.deciding_files)
        finally:
            self.worktrees.remove_candidate(name)
        if measured.problem == CANCELLED:
            raise KeyboardInterrupt
        swept = measured.results
        if swept is None:
            raise contexts.SweepError(
                f"the held-out sweep of node {node_id} failed ({measured.problem}); see "
                f"{self.run_dir / log_dir}"
            )
        found = self._parse(swept.data, manifest)
        missing = [i for i in ids if i not in found.sound_ids]
        if missing:
            raise contexts.SweepError(
                f"the held-out sweep of node {node_id} has no sound row for config_id "
                f"{missing[0]} of {ids[0]} to {ids[-1]}; lower --confirm-configs if the sweep has "
                "no such config, or let it honour TREEWRIGHT_SWEEP_CONFIG_START and _LIMIT"
            )
        return ev.HeldoutMeasured(
            node_id=node_id, artifact=swept.artifact, seconds=measured.seconds
        )

    def request(
        self, manifest: Manifest, evaluation: Evaluation, attempt: int, idea: bytes
    ) -> HeldoutRequest:
        """Return the request for the held-out sweep of an evaluated candidate."""
        parent = manifest.nodes[evaluation.parent_node_id]
        assert evaluation.candidate_commit is not None
        request = self._request(
            manifest,
            evaluation.eval_id,
            attempt,
            parent,
            evaluation.candidate_commit,
            evaluation.experiment_dir,
        )
        if not manifest.dry_run:
            return request
        return msgspec.structs.replace(
            request, idea=idea, parent_heldout=self._parent_results(manifest, evaluation).data
        )

    def judge(
        self, manifest: Manifest, evaluation: Evaluation, measured: HeldoutOutcome
    ) -> ev.Confirmed:
        """Return the event that says whether a candidate is confirmed by its held-out results."""
        assert evaluation.parent_relative is not None
        baseline = self._parent_results(manifest, evaluation)
        ids = heldout_ids(manifest)
        swept = measured.results
        found = self._compare(manifest, swept, baseline.data, measured.problem)
        confirmation = msgspec.structs.replace(
            promotion.confirm(
                evaluation.parent_relative,
                found,
                ids[0],
                ids[-1] + 1,
                must_be_significant=self.config.primary.seeds is not None,
            ),
            results_csv=swept.artifact if swept else None,
            baseline_csv_path=baseline.artifact.path,
        )
        return ev.Confirmed(
            eval_id=evaluation.eval_id, confirmation=confirmation, seconds=measured.seconds
        )

    def _parent_results(self, manifest: Manifest, evaluation: Evaluation) -> KeptFile:
        """Return the held-out results of the parent of an evaluation."""
        parent = manifest.nodes[evaluation.parent_node_id].artifacts.heldout
        assert parent is not None
        return self.deciding_files.read(parent)

    def _request(
        self, manifest: Manifest, name: str, attempt: int, node: Node, commit: str, log_dir: str
    ) -> HeldoutRequest:
        ids = heldout_ids(manifest)
        return HeldoutRequest(
            tree_run_id=manifest.tree_run_id,
            eval_id=name,
            attempt=attempt,
            parent_node_id=node.node_id,
            commit=commit,
            log_dir=log_dir,
            config_start=ids[0],
            config_stop=ids[-1] + 1,
            repo=str(self.worktrees.repo),
            run_dir=str(self.run_dir),
            config=self.config,
            protected_paths=manifest.protected_paths,
            seed=manifest.seed,
            owner=self.owner,
            root_commit=manifest.root_commit,
        )

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
        ).recommendation

    def _parse(self, data: bytes, manifest: Manifest) -> Results:
        ids = heldout_ids(manifest)
        return objectives.read(data, self.config.metrics, ids.__contains__)
