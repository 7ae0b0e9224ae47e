"""Reason codes, fates and stop reasons in words. An unknown code is shown unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from treewright.kernel.text.markdown import code, escape
from treewright.kernel.text.numbers import gain, percent
from treewright.tree.records.model import Evaluation

_REASONS = {
    "primary_metric_improved": "the primary metric improved beyond the noise",
    "primary_metric_regressed": "the primary metric got worse, beyond the noise",
    "secondary_metric_improved": "a secondary metric improved",
    "secondary_metric_regressed": "a secondary metric got worse",
    "primary_mean_worse": "the primary metric's mean is worse, within the noise",
    "insufficient_signal": "the change of the primary metric is within the noise",
    "primary_metric_unchanged": "the primary metric is the same, within its tolerance",
    "not_recommended": "nothing measured speaks for exploring it",
    "incomplete_rows": "some of the expected configs have no sound row",
    "incomplete_baseline": "the baseline it is compared with is itself incomplete",
    "non_finite_metric": "a metric is NaN or infinite",
    "non_numeric_metric": "a metric is not a number",
    "out_of_range": "a metric is outside its `min` and `max`: a broken result",
    "constraint_violated": "a constraint does not hold",
    "not_deterministic": "a metric that is said to be deterministic differed between repeats",
    "duplicate_config_id": "a config_id occurs twice in its results",
    "bad_config_id": "a row of its results has no usable config_id",
    "missing_column": "its results lack a required column",
    "duplicate_column": "its results have a required column twice",
    "unreadable_results": "its results CSV is missing or unreadable",
    "heldout_not_better": "its gain did not show on the held-out configs",
    "no_changes": "the implementation changed no tracked file",
    "only_seeds_changed": "it changed only the seed of random numbers",
    "protected_path_changed": "it changed a protected path",
    "unsealed_results": "its results lack the seal that the sweep makes",
    "outside_block_changed": "it changed more than the marked blocks",
    "deciding_file_changed": "a baseline of the run changed while its code ran",
    "tests_failed": "the tests failed",
    "tests_timeout": "the tests ran into their time limit",
    "sweep_failed": "the sweep failed",
    "sweep_timeout": "the sweep ran into its time limit",
    "parent_sweep_failed": "the sweep of its parent, made between its own, failed",
    "cancelled": "it was cancelled",
    "internal_error": "treewright itself failed on it",
    "eval_timeout": "the evaluation ran into its time limit",
    "quarantined": "the search died twice while only this candidate ran",
    "worker_lost": "the worker that evaluated it was lost",
    "machine_busy": "the machine could not start its processes",
    "agent_failed": "the agent reported a failure",
    "agent_missing": "the agent's program is not installed",
    "agent_timeout": "the agent ran into its time limit",
    "llm_failed": "the language model's endpoint refused the request",
    "llm_denied": "the language model's endpoint did not accept the key",
    "llm_no_key": "the key for the language model's endpoint is not set",
    "llm_timeout": "the language model did not answer in time",
    "llm_unavailable": "the language model's endpoint was overloaded",
    "llm_unreachable": "the language model's endpoint could not be reached",
    "reply_truncated": "the agent's reply was cut off",
    "prompt_too_long": "the prompt is longer than its budget allows",
    "edits_missing": "the agent's reply contains no edit",
    "edits_invalid": "the agent's edits are malformed",
    "patch_missing": "the idea carries no patch to apply",
    "patch_failed": "its patch does not apply to the parent's code",
    "edits_failed": "its edits could not be written",
    "edit_outside_worktree": "an edit reached outside its worktree",
    "review_not_approved": "the reviewer did not approve it within the allowed rounds",
    "script_missing": "the scripted agent has no reply for it",
    "worktree_damaged": "its git worktree was damaged while it was implemented or measured",
}

_FATES = {
    "promoted": "promoted",
    "evaluation_failed": "failed",
    "gate_failed": "not good enough",
    "duplicate_code": "same code as another",
    "duplicate_results": "same results as another",
    "not_confirmed": "not confirmed",
    "beyond_beam": "outranked",
}

_STOP_REASONS = {
    "max_depth_reached": "the maximum depth was reached",
    "empty_frontier": "nothing was left to try an idea on",
    "max_total_idea_evals": "the budget of evaluations is used up",
    "no_new_ideas": "there was no new idea to try",
    "stopped": "the user stopped it",
    "cap_reached": "the next evaluation could have broken a cap on what may be spent",
}


@dataclass(frozen=True, slots=True)
class Style:
    """The form of text from a run, and of codes without a description."""

    text: Callable[[str], str]
    code: Callable[[str], str]


MARKDOWN = Style(escape, code)
PLAIN = Style(str, str)


def describe_reason(stable_code: str, style: Style = MARKDOWN) -> str:
    """Return a reason code in words."""
    return _REASONS.get(stable_code) or style.code(stable_code)


def join_reasons(codes: list[str], style: Style = MARKDOWN) -> str:
    """Return several codes in words, without `not_recommended` if another code gives the reason."""
    rest = [stable for stable in codes if stable != "not_recommended"]
    return "; ".join(describe_reason(stable, style) for stable in rest or codes)


def describe_fate(evaluation: Evaluation) -> str:
    """Return the fate of an evaluation in one to four words."""
    if evaluation.decision is None:
        return "awaits decision" if evaluation.status in ("completed", "failed") else "unfinished"
    return _FATES.get(evaluation.decision.fate, evaluation.decision.fate)


def describe_stop(stop_reason: str | None) -> str:
    """Return the reason why a run stopped, in words."""
    if stop_reason is None:
        return "it is not finished"
    return _STOP_REASONS.get(stop_reason, stop_reason)


def explain_rejection(evaluation: Evaluation, style: Style = MARKDOWN) -> str:
    """Return one or two sentences with the reason why a candidate was not promoted."""
    decision = evaluation.decision
    if decision is None:
        return ""
    match decision.fate:
        case "evaluation_failed":
            codes = decision.gate.reasons
            cause = describe_reason(codes[0], style) if codes else "it failed"
            detail = f": {style.text(evaluation.error.message)}" if evaluation.error else ""
            return _sentence(cause) + detail
        case "gate_failed":
            return _sentence(join_reasons(decision.gate.reasons, style)) + _parent_gain(
                evaluation, style
            )
        case "duplicate_code":
            return (
                "Its code is the same as that of a node or of a better-ranked candidate: "
                "one place in the tree is enough."
            )
        case "duplicate_results":
            return (
                "Its results are, byte for byte, those of a node or of a better-ranked candidate, "
                "over many configs or with the same code after formatting: one place in the tree "
                "is enough."
            )
        case "not_confirmed":
            return _not_confirmed(evaluation, style)
        case "beyond_beam":
            return (
                f"It passed the gate, but ranked {decision.rank} of its depth and better ones "
                "filled the beam."
            )
        case other:
            return style.code(other)


def first_reason(evaluation: Evaluation) -> str:
    """Return the first reason as plain text, for tooltips."""
    decision = evaluation.decision
    if decision is None or not decision.gate.reasons or decision.gate.passed:
        return describe_fate(evaluation)
    first = decision.gate.reasons[0]
    if first == "not_recommended" and len(decision.gate.reasons) > 1:
        first = decision.gate.reasons[1]
    return _REASONS.get(first, first)


def _not_confirmed(evaluation: Evaluation, style: Style) -> str:
    confirmation = evaluation.confirmation
    if confirmation is None:
        return "It did not hold on the held-out configs."
    measured = gain(
        confirmation.heldout_gain, confirmation.heldout_gain_low, confirmation.heldout_gain_high
    )
    return (
        f"It passed the gate but did not hold on the held-out configs "
        f"{confirmation.config_start} to {confirmation.config_stop - 1}: "
        f"{join_reasons(confirmation.reasons, style)} (gain {style.text(measured)} there, "
        f"{style.text(gain(confirmation.selection_gain, None, None))} when selected)."
    )


def _parent_gain(evaluation: Evaluation, style: Style) -> str:
    found = evaluation.parent_relative
    if found is None or found.primary_gain is None:
        return ""
    shown = gain(found.primary_gain, found.primary_gain_low, found.primary_gain_high)
    return f" (primary gain {style.text(shown)}, score {style.text(percent(found.score))})"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
