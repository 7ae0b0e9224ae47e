"""The candidates of one depth that become the next frontier: a global beam.

Candidates pass a gate against their parent and are ranked against the root, so candidates of
different parents are comparable. Candidates with the same code (the same ideas in another order)
fill one place of the beam; equal scores of different code fill two (`duplicates`). Pure: `select`
names the candidates that must be confirmed first, and is called again with their confirmations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from treewright.tree.deciding import gate
from treewright.tree.deciding.duplicates import KnownCode
from treewright.tree.records.model import Confirmation, Decision, Evaluation, Fate


def rank(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return the evaluations that pass the gate, best first. Ties go to the balance over all
    metrics, then to the gain on the parent, then to the older id."""
    return sorted(
        (e for e in evaluations if gate.decide(e.parent_relative, e.error).passed), key=_rank_key
    )


def _rank_key(evaluation: Evaluation) -> tuple[float, float, float, str]:
    root, parent = evaluation.root_relative, evaluation.parent_relative
    return (
        -(root.score if root else float("-inf")),
        -((root.balance or 0.0) if root else 0.0),
        -(parent.score if parent else float("-inf")),
        evaluation.eval_id,
    )


@dataclass(frozen=True, slots=True)
class Selection:
    """The outcome of a depth, as far as it is known.

    `to_confirm` lists the candidates that must be swept on held-out configs before more can be
    decided, best first; it is empty when the selection is complete. They fill the beam if all of
    them are confirmed. If one is not, the others are still needed, so no candidate is swept that a
    one-by-one search would have left out.
    """

    promoted: list[str]
    decisions: dict[str, Decision]
    to_confirm: tuple[str, ...] = ()


def select(
    evaluations: Sequence[Evaluation],
    beam_width: int,
    known: KnownCode,
    confirmations: Mapping[str, Confirmation] | None,
) -> Selection:
    """Fill the beam from the best candidate down.

    Args:
        evaluations: The evaluations of the depth.
        beam_width: The most candidates to promote.
        known: The code and the results that are nodes already.
        confirmations: The confirmations so far; None if the run asks for none.
    """
    ranked = rank(evaluations)
    places = {e.eval_id: place for place, e in enumerate(ranked, start=1)}
    fates: dict[str, Fate] = {}
    promoted: list[str] = []
    seen = known.copy()
    missing: list[str] = []
    passed_over = KnownCode()
    for evaluation in ranked:
        eval_id, twin = evaluation.eval_id, seen.twin(evaluation)
        if twin is not None:
            fates[eval_id] = twin
            if missing:
                passed_over.add(evaluation)
        elif passed_over.twin(evaluation) is not None:
            # Should one that is still to be measured not hold, its twin may be promoted, and this
            # one would be that twin's: whether it is needed can be said only then.
            break
        elif len(promoted) == beam_width:
            fates[eval_id] = "beyond_beam"
        elif not _holds(eval_id, confirmations, missing):
            fates[eval_id] = "not_confirmed"
        else:
            fates[eval_id] = "promoted"
            promoted.append(eval_id)
            seen.add(evaluation)
    if missing:
        return Selection([], {}, tuple(missing))
    decisions = {
        e.eval_id: Decision(
            fate=fates.get(e.eval_id, "evaluation_failed" if e.error else "gate_failed"),
            gate=gate.decide(e.parent_relative, e.error),
            rank=places.get(e.eval_id),
        )
        for e in evaluations
    }
    return Selection(promoted, decisions)


def _holds(
    eval_id: str, confirmations: Mapping[str, Confirmation] | None, missing: list[str]
) -> bool:
    """Return whether a candidate is confirmed. One without a confirmation is added to `missing`
    and counts as confirmed until it has one."""
    if confirmations is None:
        return True
    if eval_id not in confirmations:
        missing.append(eval_id)
        return True
    return confirmations[eval_id].held
