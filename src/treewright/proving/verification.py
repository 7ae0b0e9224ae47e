"""What the replay check is asked about scripts, and where they go in a file.

A check that was lost or timed out says nothing about a script: it is run once more, and if that
fails too `Unchecked` is raised, so that nobody can take it for a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treewright.kernel.errors import TreewrightError
from treewright.lean import sorries
from treewright.lean.certificate import digest
from treewright.lean.inputs import theorem_texts
from treewright.lean.replay import Replayer
from treewright.lean.sorries import Sorry
from treewright.lean.verdict import Verdict
from treewright.proving.records import CheckAnswer
from treewright.proving.settings import StatementTarget
from treewright.proving.targets import Negation


class Unchecked(TreewrightError):
    """Whether a script holds could not be found out. To be tried again, now or on resume."""


def verify_statement(replayer: Replayer, target: StatementTarget, proof: str) -> Verdict:
    return answered(lambda: replayer.theorem(target.statement, proof, imports=target.imports))


def verify_refutation(replayer: Replayer, negation: Negation, proof: str) -> Verdict:
    candidate = negation.with_proof(proof)
    return answered(lambda: replayer.text(negation.original, candidate, [negation.declaration]))


def checked_texts(target: StatementTarget, proof: str) -> tuple[str, str]:
    """The original and the candidate of the check of a statement."""
    return theorem_texts(target.statement, proof, imports=target.imports)


def as_recorded(verdict: Verdict, texts: tuple[str, str]) -> CheckAnswer:
    """An answer about an original and a candidate, as it stands in a trace."""
    original, candidate = map(digest, texts)
    return CheckAnswer(verdict.reason, original, candidate, verdict.detail)


def verify_file(replayer: Replayer, original: str, candidate: str, declaration: str) -> Verdict:
    return answered(lambda: replayer.text(original, candidate, [declaration]))


def answered(check: Callable[[], Verdict]) -> Verdict:
    """What a check says, at the second attempt if the first was lost or timed out."""
    verdict = check()
    if verdict.is_fault:
        verdict = check()
    if verdict.is_fault:
        raise Unchecked(f"the replay check came to no answer: {verdict.reason}: {verdict.detail}")
    return verdict


def with_proofs(source: str, proofs: Sequence[tuple[Sorry, str]]) -> str:
    """The text with scripts in the places of their sorries, from the last to the first."""
    for sorry, proof in sorted(proofs, key=lambda pair: -pair[0].start):
        source = sorries.replace(source, sorry, proof)
    return source
