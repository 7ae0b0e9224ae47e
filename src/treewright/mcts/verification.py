"""What the replay check is asked about scripts, and where they go in a file."""

from __future__ import annotations

from collections.abc import Sequence

from treewright.lean import sorries
from treewright.lean.replay import Replayer, Verdict
from treewright.lean.sorries import Sorry
from treewright.mcts.settings import StatementTarget


def verify_statement(replayer: Replayer, target: StatementTarget, proof: str) -> Verdict:
    return replayer.theorem(target.statement, proof, imports=target.imports)


def verify_refutation(replayer: Replayer, statement: str, proof: str) -> Verdict:
    return replayer.theorem(f"¬ ({statement})", proof)


def with_proofs(source: str, proofs: Sequence[tuple[Sorry, str]]) -> str:
    """The text with scripts in the places of their sorries, from the last to the first."""
    for sorry, proof in sorted(proofs, key=lambda pair: -pair[0].start):
        source = sorries.replace(source, sorry, proof)
    return source
