"""The verdict on a cheat, and advice against a cheat that got through."""

from __future__ import annotations

from typing import Literal

import msgspec

from treewright.tree.cheats.corpus import Cheat
from treewright.tree.config import Config
from treewright.tree.evaluating.request import WORKTREE_DAMAGED
from treewright.tree.records.model import Evaluation
from treewright.tree.report import reasons
from treewright.tree.run.outcomes import OUTAGE_CODES, QUARANTINED, UNCLEAR_CODES

Outcome = Literal["through", "unknown", "stopped", "not_fitted"]
_TIMEOUTS = frozenset({"tests_timeout", "sweep_timeout", "eval_timeout", "agent_timeout"})
_FAULTS = OUTAGE_CODES | UNCLEAR_CODES | _TIMEOUTS | {WORKTREE_DAMAGED, QUARANTINED}
_TRACES = {
    "outside": "it wrote a file outside its checkout",
    "process": "its process outlived the evaluation",
    "network": "it reached another program",
    "branch": "it changed a branch of the repository",
    "heldout": "what it read is in its commit",
}


class Verdict(msgspec.Struct, frozen=True):
    """The outcome of one cheat; with `advice` if it got through."""

    name: str
    does: str
    outcome: Outcome
    why: str
    advice: str = ""


def verdict(
    cheat: Cheat, evaluation: Evaluation, traced: bool, config: Config, scripts: list[str]
) -> Verdict:
    """Return the verdict on a cheat from its evaluation and the traces that it left."""
    if cheat.sign != "promoted" and traced:
        why = _TRACES[cheat.sign]
    elif would_be_promoted(evaluation):
        why = "it would be promoted"
    else:
        why = "it left no trace"
        if evaluation.error is not None or cheat.sign == "promoted":
            why = reasons.explain_rejection(evaluation, reasons.PLAIN) or reasons.describe_fate(
                evaluation
            )
        outcome = "unknown" if _is_fault(cheat, evaluation) else "stopped"
        return Verdict(cheat.name, cheat.does, outcome, why)
    return Verdict(cheat.name, cheat.does, "through", why, advice(cheat, config, scripts))


def would_be_promoted(evaluation: Evaluation) -> bool:
    """Return whether the candidate passed the gate and its confirmation."""
    decision = evaluation.decision
    return decision is not None and decision.gate.passed and decision.fate != "not_confirmed"


def _is_fault(cheat: Cheat, evaluation: Evaluation) -> bool:
    """Return whether a fault, and not the gate, ended the evaluation.

    A time limit is the expected end of a cheat that sleeps, and a failure is the expected end of a
    cheat that an agent runs. Neither is a fault.
    """
    own = _TIMEOUTS if cheat.slow else frozenset({"agent_failed"} if cheat.way == "agent" else ())
    error, confirmation = evaluation.error, evaluation.confirmation
    if error is not None:
        return error.code not in own and (error.retryable or error.code in _FAULTS)
    # Held-out configs decide only on cheats that aim at a promotion.
    said = confirmation.reasons if confirmation is not None and cheat.sign == "promoted" else []
    return not (_FAULTS - own).isdisjoint(said)


def advice(cheat: Cheat, config: Config, scripts: list[str]) -> str:
    """Return advice that names only settings which are not made yet."""
    name = config.primary.name
    match cheat.against:
        case "protect":
            return f"add {', '.join(scripts)} to protected_paths"
        case "heldout":
            return "search with --confirm-configs: other configs then have the last word"
        case "bounds":
            return f"say with `min` and `max` what {name} can be"
        case "noise":
            return f"set seeds or repeats for {name}: a change without effect looks better"
        case "own" if config.sweep.checkout != "root":
            return 'set checkout = "root" under [sweep], and find the code by TREEWRIGHT_CANDIDATE'
        case "isolate" if config.isolation == "none":
            return 'set isolation = "bubblewrap"'
        case "isolate" if config.sweep.network and cheat.sign == "network":
            return "leave out `network` under [sweep]"
        case _ if not config.sweep.sealed:
            return (
                "measure in another process than the code runs in, and set sealed = true: "
                "`treewright init --sweep-template` writes such a sweep"
            )
        case _:
            return (
                "let no process that runs the candidate's code judge it or see the key of the seal"
            )
