"""The records of a tree run: nodes, evaluations, recommendations, the manifest.

These types are the file format (docs/manifest.md, schema/manifest.schema.json).
Paths are relative to the run directory, with forward slashes, so that a run can be
moved and two machines write the same bytes.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from treewright.kernel.budget import Spending
from treewright.kernel.storage.artifacts import Artifact
from treewright.kernel.storage.run_directory import RunEnvironment
from treewright.llm.usage import Usage
from treewright.tree.records.steering import Steering

FORMAT_VERSION = 1

Verdict = Literal["improved", "regressed", "unchanged", "unknown", "held", "violated"]
"""The last two are a constraint's."""
Grade = Literal["strong", "promising", "mixed", "weak"]
DedupeScope = Literal["node_plus_ancestors", "global", "none"]
EvalStatus = Literal["pending", "running", "completed", "failed"]
TaskState = Literal["queued", "running", "completed", "failed"]
NodeStatus = Literal["frontier", "expanded"]
Fate = Literal[
    "promoted",
    "evaluation_failed",
    "gate_failed",
    "duplicate_code",
    "duplicate_results",
    "not_confirmed",
    "beyond_beam",
]
Order = Literal["fixed", "live"]
Unset = msgspec.UnsetType
UNSET = msgspec.UNSET
"""For fields of runs without a barrier: those with one are written as if there were none."""
StopReason = Literal[
    "max_depth_reached",
    "empty_frontier",
    "max_total_idea_evals",
    "no_new_ideas",
    "stopped",
    "cap_reached",
]


class MetricComparison(msgspec.Struct, frozen=True):
    """One metric, candidate against baseline, paired by config_id.

    `mean_delta` is candidate minus baseline in the metric's unit; `gain` and its
    interval are the same turned so that positive is better.
    """

    name: str
    direction: Literal["minimize", "maximize"]
    primary: bool
    pairs: int
    baseline_mean: float | None
    candidate_mean: float | None
    mean_delta: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    verdict: Verdict


class Recommendation(msgspec.Struct, frozen=True):
    """What one comparison says about a candidate. `reasons` are stable codes; `balance` is
    the weighted gain over all metrics, by which equal scores are told apart."""

    should_explore: bool
    grade: Grade
    score: float
    reasons: list[str]
    rows_used: int
    rows_expected: int
    primary_gain: float | None = None
    primary_gain_low: float | None = None
    primary_gain_high: float | None = None
    balance: float | None = None


class Comparison(msgspec.Struct, frozen=True):
    """A recommendation with everything it was made from. Lives in summary.json."""

    recommendation: Recommendation
    metrics: list[MetricComparison]
    problems: list[str] = []


class Confirmation(msgspec.Struct, frozen=True):
    """A candidate measured again on held-out configs, before it is promoted."""

    config_start: int
    config_stop: int
    held: bool
    reasons: list[str]
    selection_gain: float | None
    heldout_gain: float | None
    heldout_gain_low: float | None
    heldout_gain_high: float | None
    shrinkage: float | None
    results_csv: Artifact | None = None
    baseline_csv_path: str | None = None


class GateDecision(msgspec.Struct, frozen=True):
    """Whether a candidate may be promoted, and why, as data."""

    passed: bool
    reasons: list[str]


class Decision(msgspec.Struct, frozen=True):
    """What became of an evaluation: at the barrier of its depth, or when its turn came.

    `rank` is its place among the candidates of the depth that passed the gate, where a whole
    depth is ranked.
    """

    fate: Fate
    gate: GateDecision
    rank: int | None = None
    promoted_to_node_id: str | None = None


class EvalError(msgspec.Struct, frozen=True):
    """Why an evaluation failed. `retryable`: a second try could give another answer."""

    code: str
    message: str
    retryable: bool = False
    log_path: str | None = None

    def __post_init__(self) -> None:
        # It may quote names of files, which are any bytes, and is to be written in any case.
        if not self.message.isascii():
            sayable = self.message.encode("utf-8", "replace").decode("utf-8")
            msgspec.structs.force_setattr(self, "message", sayable)


class EvalOutcome(msgspec.Struct, frozen=True):
    """All that an evaluation hands back. `error` is None if and only if it was scored.
    `candidate_code` is a digest of the code that does not depend on its formatting.
    `results_from`: its code was swept before, as part of that evaluation or node."""

    candidate_commit: str | None = None
    candidate_tree: str | None = None
    candidate_code: str | None = None
    results_csv: Artifact | None = None
    parent_relative: Recommendation | None = None
    root_relative: Recommendation | None = None
    review_rounds: int = 0
    approved: bool | None = None
    usage: Usage = Usage()
    timings: dict[str, float] = {}
    error: EvalError | None = None
    roles: dict[str, Usage] | Unset = UNSET
    """The usage by role, where there was any."""
    results_from: str | Unset = UNSET


class Evaluation(msgspec.Struct):
    """One idea tried on one node.

    Without a barrier: `seen` is how many outcomes its choice knew, `place` its own place among
    the outcomes, counted from 1, `without` the nodes that could not be chosen because their
    ideas were still to come.
    """

    eval_id: str
    parent_node_id: str
    depth: int
    idea_id: str
    idea_path: str
    idea_text_path: str
    idea_sha256: str
    experiment_dir: str
    status: EvalStatus = "pending"
    task_state: TaskState = "queued"
    attempt: int = 0
    lost_alone: int = 0
    lost_together: int = 0
    pauses: int = 0
    queued_at: str | None = None
    started_at: str | None = None
    boot_id: str = ""
    finished_at: str | None = None
    worker: str | None = None
    worker_pid: int | None = None
    candidate_commit: str | None = None
    candidate_tree: str | None = None
    candidate_code: str | None = None
    candidate_results_csv_path: str | None = None
    summary_path: str | None = None
    results_csv: Artifact | None = None
    parent_relative: Recommendation | None = None
    root_relative: Recommendation | None = None
    review_rounds: int = 0
    approved: bool | None = None
    usage: Usage = Usage()
    timings: dict[str, float] = {}
    error: EvalError | None = None
    confirmation: Confirmation | None = None
    decision: Decision | None = None
    seen: int | Unset = UNSET
    place: int | Unset = UNSET
    roles: dict[str, Usage] | Unset = UNSET
    results_from: str | Unset = UNSET
    without: list[str] | Unset = UNSET


class FileDigest(msgspec.Struct, frozen=True):
    path: str
    sha256: str


class IdeaRecord(msgspec.Struct, frozen=True):
    """An idea file of a node. `key` is the digest of its normalised text, for dedupe;
    `depth` the round of the search for which it was selected. Without a barrier a node is
    expanded as often as it needs ideas; `expansion` is the number of that one in the run."""

    path: str
    sha256: str
    key: str
    origin: str
    depth: int
    expansion: int | Unset = UNSET


BANNED = "banned: "
"""Before the pattern, where an idea was skipped by somebody's word."""


class SkippedIdea(msgspec.Struct, frozen=True):
    """An idea that was not tried because its text had been, or is banned."""

    origin: str
    sha256: str
    duplicate_of: str


class Dedupe(msgspec.Struct):
    scope: DedupeScope
    skipped: list[SkippedIdea] = []


class NodeArtifacts(msgspec.Struct):
    """`baseline` is the CSV its children are compared with; `heldout`, if present, the
    same on the confirmation configs."""

    baseline: Artifact | None = None
    heldout: Artifact | None = None
    promoted_from_eval_id: str | None = None


class Node(msgspec.Struct):
    """A commit and its sweep results; `code` is the digest of the code after formatting.

    Without a barrier: `tried` counts its evaluations, `expansion` is the number of its last one in
    the run.
    """

    node_id: str
    parent_node_id: str | None
    depth: int
    commit: str
    tree: str
    ref: str | None
    worktree_path: str | None
    baseline_results_csv_path: str
    sweep_config_limit: int | None
    idea_chain: list[str]
    status: NodeStatus
    created_at: str
    node_ideas_dir: str
    root_relative: Recommendation | None = None
    parent_relative: Recommendation | None = None
    generated_idea_files: list[str] = []
    context_ideas_dirs: list[str] = []
    context_idea_files: list[FileDigest] = []
    ideas: list[IdeaRecord] = []
    expanded_for_depth: int | None = None
    dedupe: Dedupe | None = None
    artifacts: NodeArtifacts = msgspec.field(default_factory=NodeArtifacts)
    code: str = ""
    tried: int | Unset = UNSET
    expansion: int | Unset = UNSET

    @property
    def score(self) -> float:
        """By which nodes are ranked: against the root, whose own is 0."""
        return self.root_relative.score if self.root_relative is not None else 0.0


class Exhausted(msgspec.Struct, frozen=True):
    """There was no new idea for a node: found when the choice of that number was to be made,
    with so many outcomes known."""

    node_id: str
    choice: int
    seen: int


class SteadySearch(msgspec.Struct):
    """How a run without a barrier chooses, and what else its choices knew.

    The k-th choice is evaluation number k. `expansions` and `settled` count what there was;
    `exhausted` are nodes without further ideas, in the order of finding that out.
    """

    policy: str
    options: dict[str, Any]
    order: Order
    lookahead: int
    branching: int | None = None
    expansions: int = 0
    settled: int = 0
    exhausted: list[Exhausted] = []


class DepthRecord(msgspec.Struct):
    """One round of the search: what was expanded, what came of it."""

    depth: int
    frontier: list[str] = []
    eval_ids: list[str] = []
    promoted: list[str] = []
    started_at: str | None = None
    finished_at: str | None = None
    rejected_worktrees_kept: bool = False
    asked: list[str] | Unset = UNSET
    """Nodes of the frontier that were asked for ideas; the budget may end before all were."""


class SnapshotMark(msgspec.Struct):
    """Which part of events.jsonl this manifest contains, and the checksum of the rest."""

    journal_offset: int = 0
    journal_epoch: int = 0
    sha256: str = ""


NoiseAnswer = Literal["same", "differs", "not_tried"]


class NoiseCheck(msgspec.Struct, frozen=True):
    """How it was established, on the root, what a difference between two sweeps means.

    `compared` says what tells a change from noise. The other fields say whether the primary metric
    was the same with another TREEWRIGHT_SEED, without TREEWRIGHT_SEED, and after a change that
    draws random numbers and has no other effect. `note` says why something was not tried.
    """

    compared: Literal["exact", "repeats", "seeds", "configs"]
    other_seed: NoiseAnswer = "not_tried"
    unseeded: NoiseAnswer = "not_tried"
    perturbed: NoiseAnswer = "not_tried"
    note: str = ""


class Manifest(msgspec.Struct):
    """The state of a run. Rebuilt from events.jsonl whenever it is missing or behind."""

    tree_run_id: str
    created_at: str
    ideas_per_node: int
    beam_width: int
    max_depth: int
    sweep_config_limit: int | None
    max_total_idea_evals: int | None
    stop_on_empty_frontier: bool
    dedupe_scope: DedupeScope
    confirm_configs: int
    seed: int
    dry_run: bool
    root_commit: str
    root_commit_time: int
    root_baseline_csv_path: str
    protected_paths: list[str]
    agent_config: dict[str, Any]
    environment: RunEnvironment
    format_version: int = FORMAT_VERSION
    kind: Literal["tree"] = "tree"
    baseline_doubt: str | None = None
    noise_check: NoiseCheck | Unset = UNSET
    """How the noise of the root was checked; unset in a dry run."""
    current_depth: int = 0
    stop_reason: StopReason | None = None
    frontier: list[str] = []
    expanded: list[str] = []
    nodes: dict[str, Node] = {}
    evaluations: dict[str, Evaluation] = {}
    depths: list[DepthRecord] = []
    spent: Spending = msgspec.field(default_factory=Spending)
    takeovers: list[dict[str, Any]] = []
    search: SteadySearch | Unset = UNSET
    """How it chooses where that is not beam search."""
    patience: int | Unset = UNSET
    """After so many depths in a row without promotion the search stops; unset is 1."""
    elites: int | Unset = UNSET
    """So many of the best nodes stay in the frontier; unset is 0."""
    caps: dict[str, dict[str, float]] | Unset = UNSET
    """What may be spent: kind (`cost_usd`, `tokens`) -> role, or `all` -> limit."""
    roles: dict[str, Usage] | Unset = UNSET
    """What was spent by role; `ideas` is the idea sources."""
    steering: list[Steering] | Unset = UNSET
    """What was changed since the run began."""
    snapshot: SnapshotMark = msgspec.field(default_factory=SnapshotMark)

    @property
    def steady(self) -> SteadySearch | None:
        """How a run without a barrier chooses; None for beam search."""
        return None if isinstance(self.search, Unset) else self.search
