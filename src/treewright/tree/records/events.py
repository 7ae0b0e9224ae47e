"""What can happen to a tree run: the lines of events.jsonl.

A line is a fact that is durable before anybody acts on it. The manifest is what
these lines add up to; `state.apply` is the addition.
"""

from __future__ import annotations

import msgspec

from treewright.kernel.storage import journal
from treewright.kernel.storage.artifacts import Artifact
from treewright.kernel.storage.lease import Owner
from treewright.llm.usage import Usage
from treewright.tree.records.model import (
    UNSET,
    Confirmation,
    Decision,
    DedupeScope,
    EvalOutcome,
    Exhausted,
    FileDigest,
    IdeaRecord,
    Manifest,
    Node,
    SkippedIdea,
    StopReason,
    Unset,
)
from treewright.tree.records.steering import Steering


class _Event(msgspec.Struct, tag_field="type", kw_only=True):
    """`epoch` and `at` are filled in by the store."""

    epoch: int = 0
    at: str = ""


class LeaseTaken(_Event, tag=journal.LEASE):
    """A process became the owner; `owner.takeover` says how the one before it ended."""

    owner: Owner


class RunCreated(_Event, tag="run_created"):
    """The manifest as it was when the run began, with the root as its only node."""

    manifest: Manifest


class NodeExpanded(_Event, tag="expanded"):
    """Ideas were chosen for a node; their files exist. Without a barrier `expansion` numbers
    these events, and `exhausted` says that there were no ideas and will be none. `failures` says
    which sources failed, and why."""

    node_id: str
    depth: int
    ideas: list[IdeaRecord]
    context_ideas_dirs: list[str]
    context_idea_files: list[FileDigest]
    dedupe_scope: DedupeScope
    skipped: list[SkippedIdea]
    usage: Usage = Usage()
    expansion: int | Unset = UNSET
    exhausted: Exhausted | Unset = UNSET
    failures: list[str] | Unset = UNSET


class Queued(_Event, tag="queued"):
    """An evaluation is to be made. `seen`: how many outcomes were known to whom chose it.
    `without`: nodes that could not be chosen, because their ideas were still to come."""

    eval_id: str
    parent_node_id: str
    depth: int
    idea_id: str
    idea_path: str
    idea_sha256: str
    experiment_dir: str
    seen: int | Unset = UNSET
    without: list[str] | Unset = UNSET


class Started(_Event, tag="started"):
    """An attempt began. `boot_id` names the start of the machine on which its coordinator ran."""

    eval_id: str
    attempt: int
    boot_id: str = ""


class Requeued(_Event, tag="requeued"):
    """The evaluation goes back to the queue; `reason` is `interrupted`, `lost` (with its
    coordinator), or the code of the failure that is tried again. `usage` is what the
    attempt had cost. `company`: how many others ran when the coordinator died; None if it did
    not, or if the machine has restarted since, so that no candidate can be blamed. `paused`: an
    outage, which ends the invocation unless it has passed by then."""

    eval_id: str
    attempt: int
    reason: str
    usage: Usage = Usage()
    company: int | None = None
    paused: bool = False
    roles: dict[str, Usage] | Unset = UNSET


class Completed(_Event, tag="completed"):
    eval_id: str
    attempt: int
    outcome: EvalOutcome
    worker: str | None = None
    worker_pid: int | None = None


class Failed(_Event, tag="failed"):
    eval_id: str
    attempt: int
    outcome: EvalOutcome
    worker: str | None = None
    worker_pid: int | None = None


class HeldoutMeasured(_Event, tag="heldout"):
    """A node's own results on the confirmation configs, which its children must beat."""

    node_id: str
    artifact: Artifact
    seconds: float = 0.0


class Confirmed(_Event, tag="confirmed"):
    """A candidate was measured on held-out configs (and held, or did not)."""

    eval_id: str
    confirmation: Confirmation
    seconds: float = 0.0


class Decided(_Event, tag="decided"):
    """The barrier of a depth: every evaluation's fate, the new nodes, the next frontier."""

    depth: int
    decisions: dict[str, Decision]
    nodes: list[Node]
    frontier: list[str]
    stop_reason: StopReason | None
    rejected_worktrees_kept: bool = False


class Settled(_Event, tag="settled"):
    """Without a barrier: one evaluation's fate, and the node that it became."""

    eval_id: str
    decision: Decision
    node: Node | None = None
    rejected_worktrees_kept: bool = False


class Stopped(_Event, tag="stopped"):
    """The search ended without a further depth."""

    reason: StopReason


class Steered(_Event, tag="steered"):
    """Somebody changed how the run goes on: the frontier and the stop reason from here on, if
    they are others, and the idea that was added. A refused command changes nothing."""

    record: Steering
    idea: IdeaRecord | Unset = UNSET
    frontier: list[str] | Unset = UNSET
    stop_reason: StopReason | Unset | None = UNSET


Event = (
    LeaseTaken
    | RunCreated
    | NodeExpanded
    | Queued
    | Started
    | Requeued
    | Completed
    | Failed
    | HeldoutMeasured
    | Confirmed
    | Decided
    | Settled
    | Stopped
    | Steered
)
