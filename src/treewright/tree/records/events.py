"""The events of a tree run: the lines of events.jsonl.

An event is written to disk before the search acts on it. `state.apply` applies events to a
manifest.
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
    """Fields of every event. The store fills in `epoch` and `at`."""

    epoch: int = 0
    at: str = ""


class LeaseTaken(_Event, tag=journal.LEASE):
    """A process became the owner; `owner.takeover` says how the one before it ended."""

    owner: Owner


class RunCreated(_Event, tag="run_created"):
    """The first manifest of a run; the root is its only node."""

    manifest: Manifest


class NodeExpanded(_Event, tag="expanded"):
    """Ideas were chosen for a node; their files exist.

    Args:
        expansion: The number of this event, in runs without a barrier.
        exhausted: Set if the node has no ideas and will have none, in runs without a barrier.
        failures: One line for each idea source that failed.
    """

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
    """An evaluation was put into the queue.

    Args:
        seen: Number of outcomes known to the choice, in runs without a barrier.
        without: Nodes excluded from the choice because their ideas were still being generated.
    """

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
    """An attempt began. `boot_id` identifies the boot of the coordinator's machine."""

    eval_id: str
    attempt: int
    boot_id: str = ""


class Requeued(_Event, tag="requeued"):
    """An evaluation went back to the queue.

    Args:
        reason: `interrupted`, `lost` (with its coordinator), or the code of a retried failure.
        usage: The cost of the attempt.
        company: Number of other evaluations running when the coordinator died. None if the
            coordinator lives, or if the machine has restarted since: then no candidate is blamed.
        paused: Whether an outage caused it; the invocation ends unless the outage passes.
    """

    eval_id: str
    attempt: int
    reason: str
    usage: Usage = Usage()
    company: int | None = None
    paused: bool = False
    roles: dict[str, Usage] | Unset = UNSET


class Completed(_Event, tag="completed"):
    """An evaluation ended with results."""

    eval_id: str
    attempt: int
    outcome: EvalOutcome
    worker: str | None = None
    worker_pid: int | None = None


class Failed(_Event, tag="failed"):
    """An evaluation ended with an error, which its outcome names."""

    eval_id: str
    attempt: int
    outcome: EvalOutcome
    worker: str | None = None
    worker_pid: int | None = None


class HeldoutMeasured(_Event, tag="heldout"):
    """A node was measured on the confirmation configs; its children must beat these results."""

    node_id: str
    artifact: Artifact
    seconds: float = 0.0


class Confirmed(_Event, tag="confirmed"):
    """A candidate was measured on held-out configs."""

    eval_id: str
    confirmation: Confirmation
    seconds: float = 0.0


class Decided(_Event, tag="decided"):
    """A depth was decided: the fate of its evaluations, the new nodes, the next frontier."""

    depth: int
    decisions: dict[str, Decision]
    nodes: list[Node]
    frontier: list[str]
    stop_reason: StopReason | None
    rejected_worktrees_kept: bool = False


class Settled(_Event, tag="settled"):
    """One evaluation was decided, in a run without a barrier, and may have become a node."""

    eval_id: str
    decision: Decision
    node: Node | None = None
    rejected_worktrees_kept: bool = False


class Stopped(_Event, tag="stopped"):
    """The search ended without a further depth."""

    reason: StopReason


class Steered(_Event, tag="steered"):
    """A command of the user was applied or refused. A refused command changes nothing.

    Args:
        idea: The idea that was added.
        frontier: The frontier from now on, if it differs.
        stop_reason: The stop reason from now on, if it differs.
    """

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
