"""A run whose evaluations do nothing: what is left is the coordinator and its records.

Everything durable is real: the lease, the journal with its fsync per record, the idea
files, the manifest. Only the idea source, the evaluation and git are left out.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from unittest import mock

from tests.toy import ToyRepository

from treewright.kernel.executors.inline import InlineExecutor
from treewright.tree.deciding.promotion import KnownCode
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.evaluating.worker import Work
from treewright.tree.ideas import expansion
from treewright.tree.ideas.idea_source import Idea, NodeContext, Proposals
from treewright.tree.records.model import EvalOutcome, Recommendation
from treewright.tree.run.coordinator import Coordinator
from treewright.tree.run.creation import Shape
from treewright.tree.run.loop import EvalExecutor
from treewright.tree.run.open import RunRequest, open_run

IDEAS_PER_NODE = 100
BEAM_WIDTH = 10


class FreeIdeas:
    """As many new ideas as are wanted, at no cost."""

    def propose(self, context: NodeContext, taken: object) -> Proposals:
        place = f"{context.node_id} at depth {context.depth}"
        return Proposals([Idea(f"# Idea {i} of {place}\n", "free") for i in range(context.wanted)])


def do_nothing(request: EvalRequest) -> EvalOutcome:
    """An outcome that passes the gate, with a score that only its id decides."""
    digest = hashlib.sha256(request.eval_id.encode()).hexdigest()
    score = int(digest[:8], 16) / 2**32
    found = Recommendation(
        True, "strong", score, ["primary_metric_improved"], 10, 10, score, score / 2, score * 2
    )
    return EvalOutcome(
        candidate_commit=request.parent_commit,
        candidate_tree=digest[:40],
        results_csv=request.root_baseline.artifact,
        parent_relative=found,
        root_relative=found,
    )


def _does_nothing(_: Work) -> EvalExecutor:
    return cast("EvalExecutor", InlineExecutor(do_nothing))


@contextlib.contextmanager
def opened(
    repo: Path, run_id: str, evaluations: int, beam_width: int = BEAM_WIDTH
) -> Iterator[Coordinator]:
    shape = Shape(
        ideas_per_node=IDEAS_PER_NODE,
        beam_width=beam_width,
        max_depth=evaluations,
        max_total_idea_evals=evaluations,
        dry_run=True,
        dedupe_scope="none",
    )
    free = mock.patch.object(expansion, "make_rehearsal_source", return_value=FreeIdeas())
    # All have the root's results, and the same results count once.
    all_new = mock.patch.object(KnownCode, "twin", return_value=None)
    with free, all_new, open_run(RunRequest(repo, run_id, shape=shape)) as coordinator:
        coordinator.make_executor = _does_nothing
        yield coordinator


def run(repo: Path, run_id: str, evaluations: int, beam_width: int = BEAM_WIDTH) -> None:
    with opened(repo, run_id, evaluations, beam_width) as coordinator:
        coordinator.finish()
        assert len(coordinator.manifest.evaluations) == evaluations


def target(directory: Path) -> Path:
    """A repository with a configuration and a baseline; its sweep is never run."""
    return ToyRepository.create(directory / "target").path
