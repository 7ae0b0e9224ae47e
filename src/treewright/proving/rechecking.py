"""The replay check of recorded proofs, once more: what `replay` with Lean adds to the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from treewright.lean.replay import Replayer
from treewright.lean.verdict import Verdict
from treewright.proving.records import VerdictReached
from treewright.proving.run import copy_of
from treewright.proving.settings import StatementTarget, Target
from treewright.proving.targets import GoalSpec
from treewright.proving.verification import (
    verify_file,
    verify_refutation,
    verify_statement,
    with_proofs,
)


def recheck(
    directory: Path,
    target: Target,
    specs: Mapping[int, GoalSpec],
    verdicts: Mapping[int, VerdictReached],
    replayer: Replayer,
) -> str:
    """The first recorded script of which Lean says something else now; '' if there is none.

    Raises Unchecked where Lean does not answer.
    """
    for goal, verdict in verdicts.items():
        if not verdict.proof:
            continue
        if goal not in specs:
            return f"goal {goal}: there is no such goal"
        accepted = verdict.status in ("proved", "false")
        answer = _ask(target, specs, verdicts, verdict, replayer)
        if answer.proved != accepted:
            said = "is accepted" if answer.proved else f"is refused ({answer.reason})"
            return f"goal {goal}: the verdict is {verdict.status}, but its script {said} now"
        said_then = verdict.check.reason if verdict.check is not None else answer.reason
        if isinstance(target, StatementTarget) and answer.reason != said_then:
            return f"goal {goal}: the replay check said {said_then!r}, now {answer.reason!r}"
        if accepted and answer.axioms != verdict.axioms:
            return f"goal {goal}: it rests on other axioms: {', '.join(answer.axioms) or 'none'}"
    return _wrong_copy(directory, target, specs, verdicts)


def still_refused(
    specs: Mapping[int, GoalSpec], scripts: Sequence[tuple[int, str]], replayer: Replayer
) -> str:
    """The first proof of a negation that is accepted although its goal is not called false."""
    for goal, script in scripts:
        if verify_refutation(replayer, specs[goal].negation, script).proved:
            return f"goal {goal}: the verdict is not `false`, but its negation is proved"
    return ""


def _ask(
    target: Target,
    specs: Mapping[int, GoalSpec],
    verdicts: Mapping[int, VerdictReached],
    verdict: VerdictReached,
    replayer: Replayer,
) -> Verdict:
    if verdict.status == "false":
        return verify_refutation(replayer, specs[verdict.goal].negation, verdict.proof)
    if isinstance(target, StatementTarget):
        return verify_statement(replayer, target, verdict.proof)
    together = {v.goal: v for v in _in_file(verdicts)} | {verdict.goal: verdict}
    text = _text(target.source, specs, together)
    sorry = specs[verdict.goal].sorry
    assert sorry is not None
    return verify_file(replayer, target.source, text, sorry.declaration)


def _in_file(verdicts: Mapping[int, VerdictReached]) -> Iterator[VerdictReached]:
    return (v for v in verdicts.values() if v.status in ("proved", "partial"))


def _text(
    source: str, specs: Mapping[int, GoalSpec], verdicts: Mapping[int, VerdictReached]
) -> str:
    pairs = [(specs[goal].sorry, v.proof) for goal, v in verdicts.items() if goal in specs]
    return with_proofs(source, [(s, proof) for s, proof in pairs if s is not None])


def _wrong_copy(
    directory: Path,
    target: Target,
    specs: Mapping[int, GoalSpec],
    verdicts: Mapping[int, VerdictReached],
) -> str:
    """The copy of the file is derived, and may be missing; it must not say something else."""
    path = copy_of(directory, target)
    if path is None or isinstance(target, StatementTarget) or not path.exists():
        return ""
    proofs = {v.goal: v for v in _in_file(verdicts)}
    text = _text(target.source, specs, proofs).encode()
    return "" if path.read_bytes() == text else f"{path.name} is not what was proved"
