"""What became of an evaluation and why, in plain sentences."""

from __future__ import annotations

from treewright.kernel.text import numbers
from treewright.tree.records.model import Confirmation, Decision, Evaluation, Recommendation
from treewright.tree.report import reasons

_UNDECIDED = {
    "pending": "It waits for its turn.",
    "running": "It is being evaluated.",
    "completed": "It has been measured; nothing is decided about it yet.",
    "failed": "It failed; nothing is decided about it yet.",
}


def decision(evaluation: Evaluation) -> list[str]:
    """The gate's decision, what the held-out configs said, and whose results these are."""
    said = _decision(evaluation)
    if isinstance(evaluation.results_from, str):
        said.append(f"The same code had been measured before, as {evaluation.results_from}.")
    return said


def _decision(evaluation: Evaluation) -> list[str]:
    if evaluation.decision is None:
        said = [_UNDECIDED[evaluation.status]]
        if evaluation.error is not None:
            said.append(f"{_capital(reasons.reason(evaluation.error.code, reasons.PLAIN))}: "
                        f"{evaluation.error.message}")  # fmt: skip
        return said
    if evaluation.decision.fate != "promoted":
        return [reasons.why_rejected(evaluation, reasons.PLAIN)]
    return _promoted(evaluation, evaluation.decision)


def _promoted(evaluation: Evaluation, made: Decision) -> list[str]:
    rank = f", ranked {made.rank} of its depth" if made.rank is not None else ""
    because = reasons.join(made.gate.reasons, reasons.PLAIN)
    said = [f"Promoted to {made.promoted_to_node_id}{rank}: {because or 'it passed the gate'}."]
    if evaluation.parent_relative is not None:
        said.append(f"Against its parent: {_measured(evaluation.parent_relative)}.")
    if evaluation.confirmation is not None:
        said.append(_held(evaluation.confirmation))
    return said


def _measured(found: Recommendation) -> str:
    gain = numbers.gain(found.primary_gain, found.primary_gain_low, found.primary_gain_high)
    score = numbers.percent(found.score)
    return f"primary gain {gain}, score {score}, {found.rows_used} of {found.rows_expected} configs"


def _held(confirmation: Confirmation) -> str:
    gain = numbers.gain(
        confirmation.heldout_gain, confirmation.heldout_gain_low, confirmation.heldout_gain_high
    )
    configs = f"{confirmation.config_start} to {confirmation.config_stop - 1}"
    return f"On the held-out configs {configs} it held: gain {gain}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
