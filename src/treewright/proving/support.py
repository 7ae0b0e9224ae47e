"""Whether a trace supports its results, and whether `result.json` agrees with the trace.

The checks are pure: they compare repeated searches with recorded lines. Whether the replay check
would answer the same again is asked by a live replay (`replay.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from treewright.lean.verify.verdict import Verdict, digest
from treewright.proving.checker import statement_texts
from treewright.proving.phases import (
    EARLY_NEGATE_SIMULATIONS,
    EARLY_PROVE_SIMULATIONS,
    negate_phase,
    prove_phase,
    retry_phase,
)
from treewright.proving.records import GoalResult, Iteration, Refusal, TraceLine
from treewright.proving.run import RunResult
from treewright.proving.script import extraction
from treewright.proving.search import Phase, Runner
from treewright.proving.settings import FileTarget, RunRecord, StatementTarget
from treewright.proving.targets import negate_in_text, negate_statement
from treewright.search.andor.graph import Status

_STATUSES_OF_SOLVED_ROOTS = ("proved", "partial", "rejected")


@dataclass(frozen=True, slots=True)
class Repeated:
    """A phase that was repeated from its recorded iterations."""

    runner: Runner
    simulations: int
    finished: bool
    statement: str = ""
    refusals: Sequence[Refusal] = ()

    @property
    def solved(self) -> bool:
        """Whether the phase solved its root."""
        return self.runner.tree.root.status is Status.SOLVED

    def script(self, left_out: Sequence[extraction.Place] = ()) -> str:
        """Return the script that the phase found, without the steps `left_out`.

        Raises ValueError if the phase found none, or if the steps cannot be left out.
        """
        step = extraction.extract(self.runner.tree.root)
        return extraction.render(extraction.remove_steps(step, left_out))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The repeated phases of one goal; None for a phase that did not take place."""

    run: RunRecord
    prove: Repeated | None
    negate: Repeated | None
    retry: Repeated | None = None


def find_unsupported(result: GoalResult, evidence: Evidence) -> str:
    """Return a claim of a result that its trace does not support; '' if all are supported."""
    proof = evidence.prove
    if (proof is None) != (result.status == "ill_typed"):
        was = "never opened" if proof is None else "opened"
        return f"the verdict is {result.status}, but the goal was {was}"
    if proof is None:
        return ""
    is_refused = result.status == "rejected" and not proof.solved
    if is_refused and not proof.refusals:
        return "the verdict is rejected, and the trace has no script that was"
    if not is_refused and proof.solved != (result.status in _STATUSES_OF_SOLVED_ROOTS):
        state = "is solved" if proof.solved else "is not solved"
        return f"the verdict is {result.status}, but the root {state}"
    return (
        _check_end(result, evidence, proof)
        or _check_negation(result, evidence)
        or _check_retry(result, evidence)
        or _check_count(result, evidence, proof)
        or _check_script(result, evidence, proof)
        or _check_words(result, evidence)
        or _check_answer(result, evidence)
    )


def find_wrong_order(lines: Iterable[TraceLine]) -> str:
    """Return where the iterations of a goal's first two phases are in a wrong order; '' if nowhere.

    The early share of the negation may be missing if the negation was searched for an earlier goal:
    for another `sorry` of the same declaration.
    """
    prove, negate = Counter[int](), Counter[int]()
    without_early_share: set[int] = set()
    for line in lines:
        if not isinstance(line, Iteration) or line.phase == "retry":
            continue
        goal = line.goal
        if line.phase == "negate":
            is_wrong = goal in without_early_share
            negate[goal] += 1
        else:
            prove[goal] += 1
            is_late = prove[goal] > EARLY_PROVE_SIMULATIONS
            is_wrong = negate[goal] > (EARLY_NEGATE_SIMULATIONS if is_late else 0)
            if is_late and not negate.total():
                without_early_share.add(goal)
        if is_wrong:
            return f"goal {goal}: the searches for it and its negation are in the wrong order"
    return ""


def find_disagreement(result: RunResult, results: Mapping[int, GoalResult]) -> str:
    """Return where `result.json` disagrees with the results in the trace; '' if nowhere.

    Goals may be missing in `result.json`: a process writes it when it stops, too.
    """
    for goal in result.goals:
        recorded = results.get(goal.goal)
        if recorded is None and goal.status != "unchecked":
            return f"result.json: goal {goal.goal} is {goal.status}; the trace has no verdict on it"
        if recorded is not None and goal != recorded:
            what = f"{goal.status} there, {recorded.status} in the trace"
            if goal.status == recorded.status:
                what = "other words or numbers than in the trace"
            return f"result.json: goal {goal.goal}: {what}"
    if result.proved != sum(goal.status == "proved" for goal in result.goals):
        return "result.json: `proved` is not the number of goals that are"
    if result.complete and (missing := set(results) - {goal.goal for goal in result.goals}):
        return f"result.json: goal {min(missing)} is missing"
    return ""


def _check_end(result: GoalResult, evidence: Evidence, proof: Repeated) -> str:
    settings = evidence.run.settings
    if result.stop != "refuted":
        return _check_stop(result.stop, proof, prove_phase(settings))
    negation = evidence.negate
    is_early = (
        result.status == "false"
        and not proof.finished
        and proof.simulations == EARLY_PROVE_SIMULATIONS < settings.simulations
        and negation is not None
        and negation.simulations <= EARLY_NEGATE_SIMULATIONS
    )
    return "" if is_early else "it is said to have been refuted early; the trace disagrees"


def _check_stop(stop: str, repeated: Repeated, phase: Phase) -> str:
    """Compare the recorded stop of a phase with the stop that its graph and its limits imply."""
    status = repeated.runner.tree.root.status
    if status is Status.SOLVED:
        expected = "solved"
    elif status is Status.DEAD:
        expected = "exhausted"
    elif repeated.finished:
        expected = "abort"
    elif repeated.simulations >= phase.simulations:
        expected = "simulations"
    else:
        expected = "time" if phase.seconds is not None else "no reason to end"
    if stop == expected:
        return ""
    return f"it is said to have ended by {stop!r}, but the trace has {expected}"


def _check_negation(result: GoalResult, evidence: Evidence) -> str:
    """Check whether the negate phase took place if it had to, and how it ended.

    It has to if the user asked for it, and the goal was not proved within the early simulations.
    For a goal of a file it may be missing: Lean does not accept every negation, and the negation is
    searched once for all sorries of a declaration.
    """
    run, negation = evidence.run, evidence.negate
    is_searched_fully = result.status in ("unproved", "false") or (
        result.status == "rejected" and evidence.prove is not None and not evidence.prove.solved
    )
    is_past_early_share = (
        evidence.prove is not None and evidence.prove.simulations > EARLY_PROVE_SIMULATIONS
    )
    is_due = run.settings.refute and (is_searched_fully or is_past_early_share)
    is_optional = isinstance(run.target, FileTarget) and result.status != "false"
    if is_due != (negation is not None) and not (is_due and is_optional):
        what = "no" if is_due else "a"
        return f"the verdict is {result.status}, and the trace has {what} search for the negation"
    if negation is None:
        return f"no negation was searched; {result.negation!r} ended it" if result.negation else ""
    if result.status == "false" and not negation.solved:
        return "the verdict is false, but the search for the negation did not find a proof"
    phase = negate_phase(run.settings)
    if not is_searched_fully:
        phase = replace(phase, simulations=EARLY_NEGATE_SIMULATIONS)
    if problem := _check_stop(result.negation, negation, phase):
        return f"the search for the negation: {problem}"
    return ""


def _check_retry(result: GoalResult, evidence: Evidence) -> str:
    """Check how a retry ended. A result that was recorded before the retry ended names none."""
    if not result.retry:
        return ""
    if evidence.retry is None:
        return f"there was no retry; {result.retry!r} ended it"
    if result.status not in ("proved", "partial"):
        return f"the verdict is {result.status}, and the trace has a retry"
    stop = "solved" if result.retry == "refused" else result.retry
    earlier = [phase for phase in (evidence.prove, evidence.negate) if phase is not None]
    spent = sum(phase.simulations for phase in earlier)
    if problem := _check_stop(stop, evidence.retry, retry_phase(evidence.run.settings, spent)):
        return f"the retry: {problem}"
    return ""


def _check_count(result: GoalResult, evidence: Evidence, proof: Repeated) -> str:
    """Check the count of all phases; a retry that is under way is not counted yet."""
    retry = evidence.retry if result.retry else None
    others = [phase for phase in (evidence.negate, retry) if phase is not None]
    simulations = proof.simulations + sum(phase.simulations for phase in others)
    if result.iterations == simulations:
        return ""
    return f"the verdict counts {result.iterations} iterations, the trace has {simulations}"


def _check_script(result: GoalResult, evidence: Evidence, proof: Repeated) -> str:
    if result.status == "unproved":
        return "an unproved goal has a proof" if result.proof else ""
    if result.status == "rejected" and not proof.solved:
        last = proof.refusals[-1].result
        is_last = (result.proof, result.detail) == (last.proof, last.detail)
        return "" if is_last else "the script is not the last one that was refused"
    if not result.proof:
        return f"the verdict is {result.status}, but there is no script"
    phase = evidence.negate if result.status == "false" else proof
    if result.retry == "solved":
        phase = evidence.retry
    assert phase is not None
    try:
        found = phase.script(result.left_out)
    except ValueError as error:
        return f"the script is not the one that was found: {error}"
    is_same = found == (result.found or result.proof)
    return "" if is_same else "the script is not the one that was found"


def _check_words(result: GoalResult, evidence: Evidence) -> str:
    if result.status == "partial" and not isinstance(evidence.run.target, FileTarget):
        return "the verdict is partial, but a statement has no parts"
    if (result.status == "proved") == bool(result.detail):
        why = "an objection" if result.detail else "no reason"
        return f"the verdict is {result.status}, with {why}: {result.detail}"
    if outside := set(result.axioms) - set(evidence.run.settings.axioms):
        return f"it rests on {', '.join(sorted(outside))}, which the run does not allow"
    if result.axioms and result.status not in ("proved", "false"):
        return f"the verdict is {result.status}, with axioms of a proof"
    return ""


def _check_answer(result: GoalResult, evidence: Evidence) -> str:
    """Check that the answer of the replay check is there, implies the status, and fits the text."""
    answer = result.check
    is_refused = evidence.negate is not None and evidence.negate.solved
    if answer is None:
        is_statement = isinstance(evidence.run.target, StatementTarget)
        is_needed = result.status in ("proved", "false") or (
            is_statement and (result.status == "rejected" or is_refused)
        )
        if is_needed:
            return f"the verdict is {result.status}, and the replay check was not asked"
        return ""
    if result.status == "unproved" and not is_refused:
        return "the verdict is unproved, and nothing was found that could have been checked"
    if (answer.reason == "proved") != (result.status in ("proved", "false")):
        return f"the verdict is {result.status}, but the replay check said {answer.reason!r}"
    if result.status == "rejected" and result.detail != f"{answer.reason}: {answer.detail}":
        return f"it is rejected in other words than the replay check's: {answer.detail}"
    return _check_texts(result, answer, evidence)


def _check_texts(result: GoalResult, answer: Verdict, evidence: Evidence) -> str:
    """Check that the answer is about the result's script.

    Only Lean knows the place of a script in a file, so of a file's goal only the original is
    compared.
    """
    target, negation = evidence.run.target, evidence.negate
    if result.status in ("unproved", "false") and negation is not None:
        script = result.proof or negation.script()
        if isinstance(target, FileTarget):
            denied = negate_in_text(target.source, negation.statement)
        else:
            denied = negate_statement(target)
        texts = (denied.original, denied.with_proof(script))
        is_same = (answer.original, answer.candidate) == tuple(map(digest, texts))
    elif isinstance(target, FileTarget):
        is_same = answer.original == digest(target.source)
    else:
        texts = statement_texts(target, result.proof)
        is_same = (answer.original, answer.candidate) == tuple(map(digest, texts))
    return "" if is_same else "the replay check was asked about another text"
