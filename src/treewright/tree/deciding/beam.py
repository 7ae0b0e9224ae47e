"""Which candidates become the next frontier: a global beam over one depth.

Gated parent-relative, ranked root-relative, so that candidates of different parents
are comparable. Candidates with the same code (the same ideas in another order) fill one place, not
two; equal scores of different code fill two (`sameness`). Pure: where a confirmation is missing,
`select` names the candidate and is asked again once it is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from treewright.tree.deciding import gate
from treewright.tree.deciding.sameness import Known
from treewright.tree.records.model import Confirmation, Decision, Evaluation, Fate


def rank(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Those that pass the gate, best first; ties go to the balance over all metrics, then to
    the gain on the parent, then to the older id."""
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

    `to_confirm` are the candidates that must be measured on held-out configs before anything
    more can be said, best first; there are none when the selection is complete. They are those
    that fill the beam if all of them hold. Should some not hold, the others are still needed,
    so nothing is measured that one after the other would not have been.
    """

    promoted: list[str]
    decisions: dict[str, Decision]
    to_confirm: tuple[str, ...] = ()


def select(
    evaluations: Sequence[Evaluation],
    beam_width: int,
    known: Known,
    confirmations: Mapping[str, Confirmation] | None,
) -> Selection:
    """Fills the beam from the best down. `confirmations` is None where none are asked for;
    `known` are the code and the results that are nodes already."""
    ranked = rank(evaluations)
    places = {e.eval_id: place for place, e in enumerate(ranked, start=1)}
    fates: dict[str, Fate] = {}
    promoted: list[str] = []
    seen = known.copy()
    missing: list[str] = []
    passed_over = Known()
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
    """What nobody has measured yet is noted, and taken to hold until then."""
    if confirmations is None:
        return True
    if eval_id not in confirmations:
        missing.append(eval_id)
        return True
    return confirmations[eval_id].held
