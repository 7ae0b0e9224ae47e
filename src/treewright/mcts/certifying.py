"""The certificate beside a run's proofs: one check of everything that was proved, written down.

Beside it stand the two texts it is about, so that `treewright lean verify` can make it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from treewright.kernel import atomic
from treewright.kernel.errors import StorageError
from treewright.lean.replay import GOAL_NAME, theorem_texts
from treewright.lean.verdict import Verdict
from treewright.mcts import layout
from treewright.mcts.settings import StatementTarget, Target

Check = Callable[[str, str, Sequence[str]], Verdict]
"""The replay check of an original, a candidate and the declarations to be proved."""


def write_certificate(
    directory: Path, check: Check, target: Target, candidate: str, declarations: list[str]
) -> Path:
    """Checks the candidate as a whole: verdicts of earlier processes are claims.

    `candidate` is the file with its scripts, or the script of a statement. Raises `Unchecked`, or
    `StorageError` if what the run says was proved does not hold.
    """
    if isinstance(target, StatementTarget):
        stem, targets = "statement", [GOAL_NAME]
        original, text = theorem_texts(target.statement, candidate, imports=target.imports)
    else:
        stem, targets = Path(target.path).stem, declarations
        original, text = target.source, candidate
    verdict = check(original, text, targets)
    if verdict.certificate is None:
        raise StorageError(
            f"{directory}: what its trace says was proved does not hold "
            f"({verdict.reason}: {verdict.detail}); the trace was changed: start a new run"
        )
    place = directory / layout.PROVED
    atomic.make_directory(place)
    atomic.write_bytes(place / f"{stem}.lean", text.encode())
    atomic.write_bytes(place / f"{stem}.original.lean", original.encode())
    certificate = place / f"{stem}.certificate.json"
    atomic.write_bytes(certificate, verdict.certificate.to_json())
    return certificate
