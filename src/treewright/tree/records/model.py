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
UNREADABLE_RESULTS = "unreadable_results"
"""The reason code of a results file that is missing, damaged or not a plain file."""

Verdict = Literal["improved", "regressed", "unchanged", "unknown", "held", "violated"]
"""Metrics are improved to unknown; constraints are held or violated."""
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
"""The value of fields that a run does not use; they are not written."""
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

    `mean_delta` is candidate minus baseline in the metric's unit. `gain` and its interval have the
    sign for which positive is better.
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
    """The result of comparing a candidate with a baseline.

    `reasons` are stable codes. `balance` is the weighted gain over all metrics; it breaks ties.
    """

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
    """A recommendation with the metrics that it is based on, as written to summary.json."""

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
    """The fate of an evaluation.

    `rank` is its rank among the candidates of its depth that passed the gate, in runs with a
    barrier.
    """

    fate: Fate
    gate: GateDecision
    rank: int | None = None
    promoted_to_node_id: str | None = None


class EvalError(msgspec.Struct, frozen=True):
    """The reason why an evaluation failed. With `retryable` a second attempt may succeed."""

    code: str
    message: str
    retryable: bool = False
    log_path: str | None = None

    def __post_init__(self) -> None:
        # The message may quote file names, which are any bytes, and must be written as UTF-8.
        if not self.message.isascii():
            encodable = self.message.encode("utf-8", "replace").decode("utf-8")
            msgspec.structs.force_setattr(self, "message", encodable)


class EvalOutcome(msgspec.Struct, frozen=True):
    """The result of an evaluation.

    `error` is None if and only if the candidate was scored. `candidate_code` is a digest of the
    code that does not depend on its formatting. `results_from` names the evaluation or node whose
    sweep of the same code was used.
    """

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
    """The usage by role, if there was any."""
    results_from: str | Unset = UNSET


class Evaluation(msgspec.Struct):
    """One idea tried on one node.

    In runs without a barrier `seen` is the number of outcomes known to its choice, `place` its
    number among the outcomes, counted from 1, and `without` names the nodes excluded from the
    choice because their ideas were still being generated.
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
    """An idea file of a node.

    `key` is the digest of its normalised text, for finding duplicates; `depth` is the depth for
    which it was selected. In runs without a barrier a node is expanded several times: `expansion`
    is the number of the expansion in the run.
    """

    path: str
    sha256: str
    key: str
    origin: str
    depth: int
    expansion: int | Unset = UNSET


BANNED = "banned: "
"""Prefix of the pattern in `duplicate_of`, for an idea that the user has banned."""


class SkippedIdea(msgspec.Struct, frozen=True):
    """An idea that was skipped: its text was tried before, or it is banned."""

    origin: str
    sha256: str
    duplicate_of: str


class Dedupe(msgspec.Struct):
    scope: DedupeScope
    skipped: list[SkippedIdea] = []


class NodeArtifacts(msgspec.Struct):
    """The results of a node: those its children are compared with, and those on held-out
    configs."""

    baseline: Artifact | None = None
    heldout: Artifact | None = None
    promoted_from_eval_id: str | None = None


class Node(msgspec.Struct):
    """A commit and its sweep results.

    `code` is a digest of the code that does not depend on its formatting. In runs without a barrier
    `tried` counts its evaluations, and `expansion` is the number of its last expansion in the run.
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
        """The score against the root, by which nodes are ranked; 0 for the root."""
        return self.root_relative.score if self.root_relative is not None else 0.0


class Exhausted(msgspec.Struct, frozen=True):
    """A node without further ideas, found at choice number `choice` with `seen` known outcomes."""

    node_id: str
    choice: int
    seen: int


class PolicyRecord(msgspec.Struct):
    """The policy of a run without a barrier, and the state that its choices depend on.

    Choice number k is evaluation number k. `expansions` and `settled` count events of the run;
    `exhausted` lists nodes without further ideas in the order in which they were found.
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
    """One depth of the search: its frontier, its evaluations and its promotions."""

    depth: int
    frontier: list[str] = []
    eval_ids: list[str] = []
    promoted: list[str] = []
    started_at: str | None = None
    finished_at: str | None = None
    rejected_worktrees_kept: bool = False
    asked: list[str] | Unset = UNSET
    """Nodes of the frontier that were asked for ideas; the budget may end before the last."""


class SnapshotMark(msgspec.Struct):
    """The part of events.jsonl that a manifest contains, and the manifest's checksum."""

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
    """The state of a run, which is rebuilt from events.jsonl if it is missing or outdated."""

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
    search: PolicyRecord | Unset = UNSET
    """The policy and its state; unset for beam search."""
    patience: int | Unset = UNSET
    """Number of consecutive depths without promotion after which the search stops; unset is 1."""
    elites: int | Unset = UNSET
    """Number of the best nodes that stay in the frontier; unset is 0."""
    caps: dict[str, dict[str, float]] | Unset = UNSET
    """Spending limits by kind (`cost_usd`, `tokens`) and role (or `all`)."""
    roles: dict[str, Usage] | Unset = UNSET
    """Usage by role; `ideas` stands for the idea sources."""
    steering: list[Steering] | Unset = UNSET
    """Commands of the user since the run began."""
    snapshot: SnapshotMark = msgspec.field(default_factory=SnapshotMark)

    @property
    def policy_record(self) -> PolicyRecord | None:
        """The policy and its state; None for beam search."""
        return None if isinstance(self.search, Unset) else self.search


def ancestors(manifest: Manifest, node: Node) -> list[Node]:
    """Return the node, its parent, and so on to the root."""
    found = [node]
    while (parent := found[-1].parent_node_id) is not None:
        found.append(manifest.nodes[parent])
    return found
