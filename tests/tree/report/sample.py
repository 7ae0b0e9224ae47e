"""Manifests made by hand: a small one with everything in it, and large ones.

`python -m tests.tree.report.sample` rewrites the golden files.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from treewright.kernel.budget import Spending
from treewright.kernel.storage.artifacts import Artifact
from treewright.kernel.storage.run_directory import RunEnvironment
from treewright.llm.usage import Usage
from treewright.tree.records.model import (
    Confirmation,
    Decision,
    Dedupe,
    DepthRecord,
    EvalError,
    Evaluation,
    Fate,
    GateDecision,
    Manifest,
    Node,
    NodeArtifacts,
    Recommendation,
    SkippedIdea,
)
from treewright.tree.report import write_report

GOLDEN = Path(__file__).parent / "golden"
NASTY = "|<script>alert('&')</script> `*_[x](y)_*` \x07\u202e $a$ ~~b~~"


def at(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"2026-02-04T09:{int(minutes):02d}:{rest:06.3f}Z"


def recommendation(gain: float | None, *reasons: str) -> Recommendation:
    if gain is None:
        return Recommendation(False, "weak", 0.0, list(reasons), 0, 8)
    grade = "strong" if gain > 0 else "weak"
    return Recommendation(
        gain > 0, grade, gain / 20, list(reasons), 8, 8, gain, gain - 0.25, gain + 0.25
    )


def node(node_id: str, parent: Node | None, depth: int, evaluation: Evaluation | None) -> Node:
    artifact = Artifact(f"artifacts/{node_id}.csv", "0" * 64, 10, "sample")
    chain = [*parent.idea_chain, evaluation.idea_path] if parent and evaluation else []
    return Node(
        node_id=node_id,
        parent_node_id=parent.node_id if parent else None,
        depth=depth,
        commit=node_id[1:] * 10,
        tree="f" * 40,
        ref=f"refs/heads/treewright/sample/node/{node_id}",
        worktree_path=f"wt/{node_id}",
        baseline_results_csv_path=artifact.path,
        sweep_config_limit=8,
        idea_chain=chain,
        status="expanded",
        created_at=at(0),
        node_ideas_dir=f"node_ideas/{node_id}",
        root_relative=evaluation.root_relative if evaluation else None,
        parent_relative=evaluation.parent_relative if evaluation else None,
        dedupe=Dedupe("node_plus_ancestors"),
        artifacts=NodeArtifacts(
            baseline=artifact, promoted_from_eval_id=evaluation.eval_id if evaluation else None
        ),
    )


class Sample:
    """Build a manifest and the files next to it that a report reads."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.root = node("n0000", None, 0, None)
        self.manifest = Manifest(
            tree_run_id="sample", created_at=at(0), ideas_per_node=5, beam_width=2, max_depth=3,
            sweep_config_limit=8, max_total_idea_evals=None, stop_on_empty_frontier=True,
            dedupe_scope="node_plus_ancestors", confirm_configs=4, seed=0, dry_run=False,
            root_commit=self.root.commit, root_commit_time=0,
            root_baseline_csv_path="artifacts/n0000.csv", protected_paths=[],
            agent_config={"metrics": [{"name": "loss", "direction": "minimize", "primary": True}]},
            environment=RunEnvironment("0", "3", "any", "host", []),
            nodes={"n0000": self.root}, frontier=["n0000"], expanded=["n0000"],
        )  # fmt: skip

    def evaluate(
        self,
        parent: Node,
        depth: int,
        title: str,
        fate: Fate | None,
        gain: float | None = None,
        reasons: tuple[str, ...] = (),
        error: EvalError | None = None,
    ) -> Evaluation:
        manifest = self.manifest
        number = len(manifest.evaluations) + 1
        eval_id = f"e{number:06d}"
        idea = f"node_ideas/{parent.node_id}/idea_{number:03d}.md"
        path = self.run_dir / idea
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {title}\n", encoding="utf-8")
        start = 2.0 * (number % 1000)
        done = fate is not None
        found = recommendation(gain, *(reasons or ((error.code,) if error else ())))
        evaluation = Evaluation(
            eval_id=eval_id, parent_node_id=parent.node_id, depth=depth,
            idea_id=f"{parent.node_id}/{path.stem}", idea_path=idea, idea_text_path=idea,
            idea_sha256="0" * 64, experiment_dir=f"eval/{eval_id}/experiment",
            status=("failed" if error else "completed") if done else "pending",
            task_state=("failed" if error else "completed") if done else "queued",
            attempt=1 + (number == 2), queued_at=at(0.5),
            started_at=at(start) if done else None, finished_at=at(start + 1.8) if done else None,
            worker="local" if done else None, worker_pid=7 if done else None,
            summary_path=f"eval/{eval_id}/experiment/summary.json" if done else None,
            parent_relative=found if done else None, root_relative=found if done else None,
            usage=Usage(100, 20, 0.001),
            timings={"implement": 0.4, "tests": 0.2, "sweep": 0.9, "score": 0.1} if done else {},
            error=error,
            decision=Decision(
                fate, GateDecision(fate not in ("gate_failed", "evaluation_failed"), found.reasons),
                rank=number if gain else None,
            ) if fate else None,
        )  # fmt: skip
        manifest.evaluations[eval_id] = evaluation
        while len(manifest.depths) < depth:
            manifest.depths.append(DepthRecord(len(manifest.depths) + 1, started_at=at(0)))
        manifest.depths[depth - 1].eval_ids.append(eval_id)
        if parent.node_id not in manifest.depths[depth - 1].frontier:
            manifest.depths[depth - 1].frontier.append(parent.node_id)
        manifest.spent.evals += 1
        return evaluation

    def promote(self, parent: Node, depth: int, title: str, gain: float) -> Node:
        evaluation = self.evaluate(
            parent, depth, title, "promoted", gain, ("primary_metric_improved",)
        )
        new = node(f"n{len(self.manifest.nodes):04d}", parent, depth, evaluation)
        assert evaluation.decision is not None
        evaluation.decision = msgspec.structs.replace(
            evaluation.decision, promoted_to_node_id=new.node_id
        )
        self.manifest.nodes[new.node_id] = new
        self.manifest.depths[depth - 1].promoted.append(new.node_id)
        return new

    def confirm(self, evaluation: Evaluation, held: bool, heldout: float) -> None:
        assert evaluation.parent_relative is not None
        gain = evaluation.parent_relative.primary_gain or 1.0
        evaluation.confirmation = Confirmation(
            8, 12, held, [] if held else ["heldout_not_better"], gain, heldout, heldout - 0.5,
            heldout + 0.5, 1 - heldout / gain,
        )  # fmt: skip


def small(run_dir: Path) -> Manifest:
    """Every fate once, hostile titles, an unknown code, a takeover, something unfinished."""
    sample = Sample(run_dir)
    manifest, root = sample.manifest, sample.root
    first = sample.promote(root, 1, "Anneal the learning rate", 1.0)
    sample.confirm(manifest.evaluations["e000001"], True, 0.8)
    sample.evaluate(root, 1, NASTY, "gate_failed", -0.5, ("primary_metric_regressed",))
    lost = sample.evaluate(root, 1, "Luck", "not_confirmed", 0.9, ("primary_metric_improved",))
    sample.confirm(lost, False, -0.1)
    sample.evaluate(
        root, 1, "Edit the sweep", "evaluation_failed",
        error=EvalError("protected_path_changed", "changes protected sweep.sh; nothing was run"),
    )  # fmt: skip
    second = sample.promote(root, 1, "Wider layers", 0.6)
    manifest.depths[0].finished_at = at(12)
    best = sample.promote(first, 2, "Warm-up", 2.0)
    sample.confirm(manifest.evaluations["e000006"], True, 1.5)
    sample.evaluate(
        first, 2, "Crash", "evaluation_failed",
        error=EvalError("tests_failed", "the test command exited with code 1",
                        log_path="eval/e000007/experiment/tests.log"),
    )  # fmt: skip
    sample.evaluate(second, 2, "Warm-up", "duplicate_code", 1.9, ("primary_metric_improved",))
    sample.evaluate(second, 2, "Dropout", "beyond_beam", 0.7, ("primary_metric_improved",))
    sample.evaluate(second, 2, "New", "gate_failed", 0.0, ("not_recommended", "a_code_of_2030"))
    manifest.depths[1].finished_at = at(25)
    sample.evaluate(best, 3, "Not started yet", None)
    manifest.current_depth, manifest.frontier = 2, [best.node_id]
    second.dedupe = Dedupe("node_plus_ancestors", [SkippedIdea("ideas/x.md", "0" * 64, "y")])
    manifest.takeovers = [{"epoch": 2, "at": at(3), "how": "stale", "host": "b", "pid": 9}]
    manifest.spent = Spending(11, 3, 25.5, 0.0123, 1100, 220)
    summary = run_dir / "eval/e000006/experiment/summary.json"
    summary.parent.mkdir(parents=True)
    metric = {"name": "loss", "primary": True, "baseline_mean": 16.5, "candidate_mean": 14.5}
    document = {"scoring_summary": {"root_relative": {"metrics": [metric]}}}
    summary.write_bytes(msgspec.json.encode(document))
    return manifest


def large(run_dir: Path, evaluations: int, depths: int) -> Manifest:
    """A beam of two, most candidates rejected."""
    sample = Sample(run_dir)
    parents = [sample.root]
    each = evaluations // depths
    for depth in range(1, depths + 1):
        promoted = [
            sample.promote(parents[n % len(parents)], depth, f"Good {depth}.{n}", depth + 0.1 * n)
            for n in range(2)
        ]
        for n in range(each - 2):
            sample.evaluate(
                parents[n % len(parents)], depth, f"Idea {n}", "gate_failed", -0.01 * (n % 90),
                ("insufficient_signal",),
            )  # fmt: skip
        parents = promoted
    sample.manifest.current_depth = depths
    return sample.manifest


def golden_files() -> dict[str, str]:
    """The report of the small sample: name -> text."""
    with tempfile.TemporaryDirectory() as name:
        run_dir = Path(name)
        write_report(run_dir, small(run_dir))
        pictures = sorted((run_dir / "report").iterdir())
        return {path.name: path.read_text() for path in (run_dir / "TREE_SUMMARY.md", *pictures)}


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for file, text in golden_files().items():
        (GOLDEN / file).write_text(text)
