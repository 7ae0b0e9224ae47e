"""The gate against the parent: may a candidate be promoted? Pure; reasons are codes."""

from __future__ import annotations

from treewright.tree.deciding.scoring import (
    INCOMPLETE_ROWS,
    OF_METRICS,
    PRIMARY_IMPROVED,
    PRIMARY_MEAN_WORSE,
    PRIMARY_REGRESSED,
    SECONDARY_IMPROVED,
)
from treewright.tree.records.model import Confirmation, EvalError, GateDecision, Recommendation

NOT_RECOMMENDED = "not_recommended"
HELDOUT_NOT_BETTER = "heldout_not_better"


def decide(parent_relative: Recommendation | None, error: EvalError | None) -> GateDecision:
    """Pass a recommended candidate, and a `mixed` one if its primary mean is not worse.

    A `mixed` grade has no other argument for the candidate than the mean. Incomplete measurements
    never pass.
    """
    if error is not None:
        return GateDecision(False, [error.code])
    if parent_relative is None:
        return GateDecision(False, [INCOMPLETE_ROWS])
    if parent_relative.rows_used != parent_relative.rows_expected:
        return GateDecision(False, _with(INCOMPLETE_ROWS, parent_relative.reasons))
    if PRIMARY_REGRESSED in parent_relative.reasons:
        return GateDecision(False, _with(PRIMARY_REGRESSED, parent_relative.reasons))
    if parent_relative.should_explore:
        return GateDecision(True, parent_relative.reasons)
    if parent_relative.grade == "mixed":
        worse = PRIMARY_MEAN_WORSE in parent_relative.reasons
        return GateDecision(not worse, parent_relative.reasons)
    return GateDecision(False, _with(NOT_RECOMMENDED, parent_relative.reasons))


def confirm(
    selection: Recommendation,
    heldout: Recommendation,
    config_start: int,
    config_stop: int,
    *,
    must_be_significant: bool = False,
) -> Confirmation:
    """Return the confirmation: does the gain on the selection configs show on held-out configs?

    The held-out rows must be complete and sound on both sides and must not show a worse primary
    metric. If the gain of the primary metric got the candidate selected, they must show a gain as
    well. The shrinkage is the share of the selected gain that the held-out rows do not show.
    """
    reasons = [reason for reason in heldout.reasons if reason not in OF_METRICS]
    shown = PRIMARY_IMPROVED if selection.should_explore else SECONDARY_IMPROVED
    if heldout.rows_used != heldout.rows_expected:
        reasons = reasons or [INCOMPLETE_ROWS]
    elif PRIMARY_REGRESSED in heldout.reasons:
        reasons.append(PRIMARY_REGRESSED)
    elif (selection.should_explore and not (heldout.primary_gain or 0.0) > 0) or (
        must_be_significant and shown not in heldout.reasons
    ):
        reasons.append(HELDOUT_NOT_BETTER)
    elif PRIMARY_MEAN_WORSE in heldout.reasons:
        reasons.append(PRIMARY_MEAN_WORSE)
    shrinkage = None
    if selection.primary_gain and heldout.primary_gain is not None:
        shrinkage = 1.0 - heldout.primary_gain / selection.primary_gain
    return Confirmation(
        config_start=config_start,
        config_stop=config_stop,
        held=not reasons,
        reasons=reasons,
        selection_gain=selection.primary_gain,
        heldout_gain=heldout.primary_gain,
        heldout_gain_low=heldout.primary_gain_low,
        heldout_gain_high=heldout.primary_gain_high,
        shrinkage=shrinkage,
    )


def _with(code: str, reasons: list[str]) -> list[str]:
    return [code, *(reason for reason in reasons if reason != code)]
