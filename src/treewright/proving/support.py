"""Does a trace support the verdicts that were drawn from it, and does `result.json` say the same?

Pure: of a search that was repeated and of recorded lines, with them what Lean's replay check
answered. Whether it would say so again, `replay` with Lean asks (`rechecking`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from treewright.lean.verify.certificate import digest
from treewright.proving.checker import checked_texts
from treewright.proving.once_more import again_limits
from treewright.proving.records import CheckAnswer, VerdictReached
from treewright.proving.refutation import NEGATION_SHARE, PROOF_SHARE, negation_limits
from treewright.proving.run import RunResult, goal_result
from treewright.proving.script import extraction
from treewright.proving.search import Limits, Runner
from treewright.proving.settings import FileTarget, RunRecord, StatementTarget
from treewright.proving.targets import negation_in_text, negation_of
from treewright.search.andor.graph import Status

_NEEDS_SOLVED_ROOT = ("proved", "partial", "rejected")


@dataclass(frozen=True, slots=True)
class Searched:
    """A search that was repeated from its recorded turns."""

    runner: Runner
    turns: int
    finished: bool
    statement: str = ""

    @property
    def solved(self) -> bool:
        return self.runner.tree.root.status is Status.SOLVED

    def script(self, left_out: Sequence[extraction.Place] = ()) -> str:
        """What it found. Raises ValueError if it is not solved, or cannot be left out."""
        step = extraction.extract(self.runner.tree.root)
        return extraction.render(extraction.without(step, left_out))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a trace has on one goal."""

    run: RunRecord
    proof: Searched | None
    negation: Searched | None
    again: Searched | None = None


def unsupported(verdict: VerdictReached, evidence: Evidence) -> str:
    """What a verdict says that its trace does not; '' if it is supported."""
    proof = evidence.proof
    if (proof is None) != (verdict.status == "ill_typed"):
        was = "never opened" if proof is None else "opened"
        return f"the verdict is {verdict.status}, but the goal was {was}"
    if proof is None:
        return ""
    if proof.solved != (verdict.status in _NEEDS_SOLVED_ROOT):
        state = "is solved" if proof.solved else "is not solved"
        return f"the verdict is {verdict.status}, but the root {state}"
    settings = evidence.run.settings
    limits = Limits(settings.simulations, settings.time_limit)
    if verdict.stop == "refuted":
        ended = _wrong_early_end(verdict, evidence, proof)
    else:
        ended = _wrong_end(verdict.stop, proof, limits)
    return (
        ended
        or _wrong_negation(verdict, evidence)
        or _wrong_again(verdict, evidence)
        or _wrong_count(verdict, evidence, proof)
        or _wrong_script(verdict, evidence, proof)
        or _wrong_words(verdict, evidence)
        or _wrong_check(verdict, evidence)
    )


def stale(result: RunResult, verdicts: Mapping[int, VerdictReached]) -> str:
    """Where `result.json` says something else than the trace; '' if nowhere.

    Goals may be missing in it: it is written when a process has done what it could.
    """
    for goal in result.goals:
        verdict = verdicts.get(goal.goal)
        if verdict is None and goal.status != "unchecked":
            return f"result.json: goal {goal.goal} is {goal.status}; the trace has no verdict on it"
        if verdict is not None and goal != goal_result(goal.name, verdict):
            what = f"{goal.status} there, {verdict.status} in the trace"
            if goal.status == verdict.status:
                what = "other words or numbers than in the trace"
            return f"result.json: goal {goal.goal}: {what}"
    if result.proved != sum(goal.status == "proved" for goal in result.goals):
        return "result.json: `proved` is not the number of goals that are"
    if result.complete and (missing := set(verdicts) - {goal.goal for goal in result.goals}):
        return f"result.json: goal {min(missing)} is missing"
    return ""


def _wrong_end(stop: str, searched: Searched, limits: Limits) -> str:
    """A search ends for one reason, which can be seen in what was searched."""
    status = searched.runner.tree.root.status
    if status is Status.SOLVED:
        expected = ("solved",)
    elif status is Status.DEAD:
        expected = ("exhausted",)
    elif searched.finished:
        expected = ("abort",)
    elif searched.turns >= limits.simulations:
        expected = ("simulations",)
    else:
        expected = ("time",) if limits.seconds is not None else ()
    if stop in expected:
        return ""
    seen = expected[0] if expected else "no reason to end"
    return f"it is said to have ended by {stop!r}, but the trace has {seen}"


def _wrong_early_end(verdict: VerdictReached, evidence: Evidence, proof: Searched) -> str:
    """A goal is refuted early when the negation is proved within its first share."""
    negation = evidence.negation
    early = (
        verdict.status == "false"
        and not proof.finished
        and proof.turns == PROOF_SHARE < evidence.run.settings.simulations
        and negation is not None
        and negation.turns <= NEGATION_SHARE
    )
    return "" if early else "it is said to have been refuted early, but the trace has more or less"


def _wrong_count(verdict: VerdictReached, evidence: Evidence, proof: Searched) -> str:
    """A verdict counts all searches; one once more that is under way is not in it."""
    again = evidence.again if verdict.again else None
    turns = proof.turns + sum(other.turns for other in (evidence.negation, again) if other)
    if verdict.iterations == turns:
        return ""
    return f"the verdict counts {verdict.iterations} iterations, the trace has {turns}"


def _wrong_negation(verdict: VerdictReached, evidence: Evidence) -> str:
    """The negation of a statement is searched if the user asked for that, and the statement was not
    proved or its proof took more than the first share.

    Of a goal of a file it may be missing: Lean takes not every negation, and one is searched once
    for all sorries of its declaration.
    """
    run, negation = evidence.run, evidence.negation
    in_vain = verdict.status in ("unproved", "false")
    long = evidence.proof is not None and evidence.proof.turns > PROOF_SHARE
    due = run.settings.refute and (in_vain or long)
    optional = isinstance(run.target, FileTarget) and verdict.status != "false"
    if due != (negation is not None) and not (due and optional):
        what = "no" if due else "a"
        return f"the verdict is {verdict.status}, and the trace has {what} search for the negation"
    if negation is None:
        return f"no negation was searched; {verdict.negation!r} ended it" * bool(verdict.negation)
    if verdict.status == "false" and not negation.solved:
        return "the verdict is false, but the search for the negation did not find a proof"
    limits = negation_limits(run.settings)
    if not in_vain:
        limits = Limits(NEGATION_SHARE, limits.seconds)
    if problem := _wrong_end(verdict.negation, negation, limits):
        return f"the search for the negation: {problem}"
    return ""


def _wrong_again(verdict: VerdictReached, evidence: Evidence) -> str:
    """The search once more is for what was partial. While it is under way the verdict has none."""
    again = evidence.again
    if not verdict.again:
        return ""
    if again is None:
        return f"nothing was searched once more; {verdict.again!r} ended it"
    if verdict.status not in ("proved", "partial"):
        return f"the verdict is {verdict.status}, and the trace has a search once more"
    ended = "solved" if verdict.again == "refused" else verdict.again
    other = (evidence.proof, evidence.negation)
    spent = sum(searched.turns for searched in other if searched is not None)
    if problem := _wrong_end(ended, again, again_limits(evidence.run.settings, spent)):
        return f"the search once more: {problem}"
    return ""


def _wrong_script(verdict: VerdictReached, evidence: Evidence, proof: Searched) -> str:
    if verdict.status == "unproved":
        return "an unproved goal has a proof" * bool(verdict.proof)
    if not verdict.proof:
        return f"the verdict is {verdict.status}, but there is no script"
    searched = evidence.negation if verdict.status == "false" else proof
    if verdict.again == "solved":
        searched = evidence.again
    assert searched is not None
    try:
        found = searched.script(verdict.left_out)
    except ValueError as error:
        return f"the script is not the one that was found: {error}"
    same = found == (verdict.found or verdict.proof)
    return "" if same else "the script is not the one that was found"


def _wrong_words(verdict: VerdictReached, evidence: Evidence) -> str:
    if verdict.status == "partial" and not isinstance(evidence.run.target, FileTarget):
        return "the verdict is partial, but a statement has no parts"
    if (verdict.status == "proved") == bool(verdict.detail):
        why = "an objection" if verdict.detail else "no reason"
        return f"the verdict is {verdict.status}, with {why}: {verdict.detail}"
    if outside := set(verdict.axioms) - set(evidence.run.settings.axioms):
        return f"it rests on {', '.join(sorted(outside))}, which the run does not allow"
    if verdict.axioms and verdict.status not in ("proved", "false"):
        return f"the verdict is {verdict.status}, with axioms of a proof"
    return ""


def _wrong_check(verdict: VerdictReached, evidence: Evidence) -> str:
    """The answer of the replay check must be there, give the verdict, and be about its script."""
    check = verdict.check
    refused = evidence.negation is not None and evidence.negation.solved
    if check is None:
        of_statement = isinstance(evidence.run.target, StatementTarget)
        needed = verdict.status in ("proved", "false") or (
            of_statement and (verdict.status == "rejected" or refused)
        )
        if needed:
            return f"the verdict is {verdict.status}, and the replay check was not asked"
        return ""
    if verdict.status == "unproved" and not refused:
        return "the verdict is unproved, and nothing was found that could have been checked"
    if (check.reason == "proved") != (verdict.status in ("proved", "false")):
        return f"the verdict is {verdict.status}, but the replay check said {check.reason!r}"
    if verdict.status == "rejected" and verdict.detail != f"{check.reason}: {check.detail}":
        return f"it is rejected in other words than the replay check's: {check.detail}"
    return _about_another_text(verdict, check, evidence)


def _about_another_text(verdict: VerdictReached, check: CheckAnswer, evidence: Evidence) -> str:
    """Where a script goes in a file only Lean knows; of a file the original can be compared."""
    target, negation = evidence.run.target, evidence.negation
    if verdict.status in ("unproved", "false") and negation is not None:
        script = verdict.proof or negation.script()
        if isinstance(target, FileTarget):
            denied = negation_in_text(target.source, negation.statement)
        else:
            denied = negation_of(target)
        texts = (denied.original, denied.with_proof(script))
        same = (check.original, check.candidate) == tuple(map(digest, texts))
    elif isinstance(target, FileTarget):
        same = check.original == digest(target.source)
    else:
        texts = checked_texts(target, verdict.proof)
        same = (check.original, check.candidate) == tuple(map(digest, texts))
    return "" if same else "the replay check was asked about another text"
