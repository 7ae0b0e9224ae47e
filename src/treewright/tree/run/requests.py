"""Requests for evaluations, made from the records of a run.

A request holds everything that an evaluation needs. The files of ideas are read before the code of
a candidate can change them, and compared with their recorded checksums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from treewright.kernel.errors import StorageError
from treewright.kernel.storage import untrusted
from treewright.tree.config import Config
from treewright.tree.deciding.caps import Allowance
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.guard.baselines import DecidingFiles, KeptFile
from treewright.tree.ideas.node_description import describe_node, has_prompted_agent
from treewright.tree.ideas.search_history import Outcomes
from treewright.tree.records import events as ev
from treewright.tree.records import layout
from treewright.tree.records.model import Evaluation, IdeaRecord, Node
from treewright.tree.records.store import RunStore
from treewright.tree.run.creation import ROOT_NODE

_MAX_CONTEXTS = 256


def queued(number: int, node: Node, idea: IdeaRecord, depth: int) -> ev.Queued:
    """Return the event that queues an idea for a node as the evaluation with this number."""
    eval_id = f"e{number:06d}"
    return ev.Queued(
        eval_id=eval_id,
        parent_node_id=node.node_id,
        depth=depth,
        idea_id=f"{node.node_id}/{idea.path.rpartition('/')[2].removesuffix('.md')}",
        idea_path=idea.path,
        idea_sha256=idea.sha256,
        experiment_dir=layout.experiment(eval_id),
    )


@dataclass(slots=True)
class Requests:
    """Makes the requests of one run for one owner."""

    store: RunStore
    repo: Path
    config: Config
    deciding_files: DecidingFiles
    expected_ids: list[int]
    owner: str
    _ideas: dict[str, bytes] = field(default_factory=dict, init=False)
    _contexts: dict[tuple[str, int, object], str] = field(default_factory=dict, init=False)

    def evaluation(
        self,
        evaluation: Evaluation,
        attempt: int,
        *,
        timeout_seconds: float | None,
        allowance: Allowance | None,
    ) -> EvalRequest:
        manifest = self.store.manifest
        parent = manifest.nodes[evaluation.parent_node_id]
        root_baseline = self._baseline(manifest.nodes[ROOT_NODE])
        is_root = parent.node_id == ROOT_NODE
        return EvalRequest(
            tree_run_id=manifest.tree_run_id,
            eval_id=evaluation.eval_id,
            attempt=attempt,
            parent_node_id=parent.node_id,
            parent_commit=parent.commit,
            idea_path=evaluation.idea_path,
            idea=self.idea(evaluation),
            parent_context=self._context(parent, evaluation),
            repo=str(self.repo),
            run_dir=str(self.store.run_dir),
            config=self.config,
            protected_paths=manifest.protected_paths,
            expected_ids=self.expected_ids,
            sweep_config_limit=manifest.sweep_config_limit,
            parent_baseline=root_baseline if is_root else self._baseline(parent),
            root_baseline=root_baseline,
            commit_time=manifest.root_commit_time + evaluation.depth,
            seed=manifest.seed,
            owner=self.owner,
            timeout_seconds=timeout_seconds,
            root_commit=manifest.root_commit,
            allowance=allowance,
        )

    def keep_ideas(self, evaluations: Iterable[Evaluation]) -> None:
        """Read the ideas of these evaluations into memory, and forget all others."""
        self._ideas = {each.idea_path: self._read(each) for each in evaluations}

    def keep_idea(self, evaluation: Evaluation) -> None:
        self._ideas[evaluation.idea_path] = self._read(evaluation)

    def forget_idea(self, evaluation: Evaluation) -> None:
        self._ideas.pop(evaluation.idea_path, None)

    def idea(self, evaluation: Evaluation) -> bytes:
        return self._ideas.get(evaluation.idea_path) or self._read(evaluation)

    def _read(self, evaluation: Evaluation) -> bytes:
        """Return the idea as bytes: text mode would change the line endings of a patch."""
        path = self.store.run_dir / evaluation.idea_path
        try:
            data = untrusted.read(path, untrusted.LARGEST_TEXT)
        except OSError as error:
            raise StorageError(f"cannot read the idea of {evaluation.eval_id}: {error}") from None
        if hashlib.sha256(data).hexdigest() != evaluation.idea_sha256:
            raise StorageError(
                f"{path} is not the idea that was recorded for {evaluation.eval_id}; restore it "
                "from a backup, or start a new run"
            )
        return data

    def _baseline(self, node: Node) -> KeptFile:
        assert node.artifacts.baseline is not None
        return self.deciding_files.get(node.artifacts.baseline)

    def _context(self, node: Node, evaluation: Evaluation) -> str:
        """Return the text about the parent for agents; equal requests share it."""
        tells = has_prompted_agent(self.config)  # other agents do not get the text
        key = (node.node_id, evaluation.depth, evaluation.seen if tells else None)
        if key not in self._contexts:
            if len(self._contexts) >= _MAX_CONTEXTS:
                self._contexts.clear()
            seen = evaluation.seen if isinstance(evaluation.seen, int) else None
            store = self.store
            outcomes = Outcomes(self.repo, store.run_dir, self.config, store.manifest, node, seen)
            self._contexts[key] = describe_node(outcomes)
        return self._contexts[key]
