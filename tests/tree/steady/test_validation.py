"""Validation of runs without a barrier with forged records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.toy import ToyRepository
from tests.tree.runs import FinishedRun
from tests.tree.steady.running import DRY, steady
from treewright.tree.records.model import Exhausted, Manifest
from treewright.tree.validation import validate


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> FinishedRun:
    toy = ToyRepository.create(tmp_path_factory.mktemp("forged") / "a target")
    steady(toy.path, "run", "ab-mcts", lookahead=2)
    assert validate(toy.run_dir("run"), toy.path) == []
    return FinishedRun(toy, Path("/nonexistent"))


def _other_parent(manifest: Manifest) -> None:
    """Attribute the last choice to another node."""
    last = list(manifest.evaluations.values())[-1]
    other = next(n for n in manifest.nodes.values() if n.node_id != last.parent_node_id)
    last.parent_node_id = other.node_id


def _knew_more(manifest: Manifest) -> None:
    evaluation = manifest.evaluations["e000005"]
    assert isinstance(evaluation.seen, int)
    evaluation.seen += 1


def _another_order(manifest: Manifest) -> None:
    first, second = manifest.evaluations["e000001"], manifest.evaluations["e000002"]
    first.place, second.place = second.place, first.place


def _another_seed(manifest: Manifest) -> None:
    steady_state = manifest.policy_record
    assert steady_state is not None
    steady_state.options = {**steady_state.options, "prior_spread": 50.0}


def _exhausted(manifest: Manifest) -> None:
    steady_state = manifest.policy_record
    assert steady_state is not None
    growing = manifest.frontier[-1]
    steady_state.exhausted = [*steady_state.exhausted, Exhausted(growing, 3, 1)]


def _exhausted_later(manifest: Manifest) -> None:
    """Mark a node as exhausted at a choice that was never made."""
    steady_state = manifest.policy_record
    assert steady_state is not None
    steady_state.exhausted.append(Exhausted("n0001", 99, 1))


def _unknown_policy(manifest: Manifest) -> None:
    steady_state = manifest.policy_record
    assert steady_state is not None
    steady_state.policy = "psychic"


def _fate(manifest: Manifest) -> None:
    evaluation = next(
        e for e in manifest.evaluations.values() if e.decision and e.decision.fate == "gate_failed"
    )
    assert evaluation.decision is not None
    evaluation.decision = msgspec.structs.replace(evaluation.decision, fate="duplicate_code")


def _stop(manifest: Manifest) -> None:
    manifest.stop_reason = "no_new_ideas"


FORGERIES: dict[str, tuple[Callable[[Manifest], None], str]] = {
    "another parent": (_other_parent, "choice_differs"),
    "it knew more": (_knew_more, "choice_differs"),
    "another order": (_another_order, "choice_differs"),
    "another setting": (_another_seed, "choice_differs"),
    "exhausted without a reason": (_exhausted, "choice_differs"),
    "exhausted by nobody": (_exhausted_later, "choice_differs"),
    "no such policy": (_unknown_policy, "policy_unknown"),
    "another fate": (_fate, "fate_differs"),
    "another stop reason": (_stop, "stop_reason_differs"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_record_is_found(run: FinishedRun, name: str) -> None:
    change, code = FORGERIES[name]
    run_dir = run.run_dir
    kept = {path: (run_dir / path).read_bytes() for path in ("manifest.json", "events.jsonl")}
    try:
        run.rewrite_history(change)
        assert code in {finding.code for finding in validate(run_dir, run.toy.path)}
    finally:
        for path, data in kept.items():
            (run_dir / path).write_bytes(data)
    assert DRY.dry_run
