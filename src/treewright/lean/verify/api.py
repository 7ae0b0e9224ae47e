"""`treewright.verify`: check that a candidate proves the open targets of an original.

The same check as `treewright lean verify`, as a function. If the check cannot be made, an exception
is raised and there is no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from treewright.kernel.errors import UsageError, require_several
from treewright.lean.choice import choose, open_lean
from treewright.lean.processes import LeanProcesses
from treewright.lean.session.errors import DEFAULT_CHECK_SECONDS
from treewright.lean.verify.verdict import DEFAULT_AXIOMS, NoVerdict, Verdict


def verify(
    original: str | Path,
    candidate: str | Path,
    *,
    targets: Sequence[str] = (),
    axioms: Collection[str] = (),
    timeout: float = DEFAULT_CHECK_SECONDS,
    lean: str = "auto",
    sandbox: bool = False,
    announce: Callable[[str], None] = lambda text: None,
) -> Verdict:
    """Return the verdict of the replay check on a candidate.

    Args:
        original: the text with the open targets, or its file as a `Path`.
        candidate: the text with the proofs, or its file as a `Path`.
        targets: the declarations to prove (default: all in the original that rest on `sorry`).
        axioms: axioms that are allowed besides Lean's own three.
        timeout: seconds for each process of the check.
        lean: `auto`, `wasm` or `native`.
        sandbox: whether native Lean runs in bubblewrap.
        announce: receives notes about the Lake project.

    Returns:
        A verdict, which is true if every target is proved, and then has a certificate.

    Raises:
        NoVerdict: the check was lost or timed out, or a file changed meanwhile.
    """
    require_several(targets=targets, axioms=axioms)
    if not (math.isfinite(timeout) and timeout > 0):
        raise UsageError("timeout must be a positive number of seconds")
    if "sorryAx" in axioms:
        raise UsageError("axioms cannot allow sorryAx: a proof with sorry is none")
    texts = (_text(original, "original"), _text(candidate, "candidate"))
    start = original.resolve() if isinstance(original, Path) else Path.cwd()
    choice = choose(lean, start.parent if start.is_file() else start, sandbox=sandbox)
    # The modules of a project belong to a file of it; a text has its imports from the library.
    host, project = open_lean(choice, start if isinstance(original, Path) else None, announce)
    allowed = DEFAULT_AXIOMS | set(axioms)
    with LeanProcesses(host, project, axioms=allowed) as processes:
        verdict = processes.replayer.text(*texts, targets, declarations=True, timeout=timeout)
    if verdict.is_fault:
        advice = "with a larger timeout" if verdict.reason == "timeout" else "again"
        raise NoVerdict(f"no verdict ({verdict.reason}): {verdict.detail}; call verify {advice}")
    return verdict


def _text(given: str | Path, name: str) -> str:
    if isinstance(given, str):
        if given.endswith(".lean") and "\n" not in given:
            raise UsageError(f"the {name} is a text; for a file give pathlib.Path({given!r})")
        return given
    try:
        return given.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"cannot read {given}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{given} is not UTF-8 (byte {error.start})") from None
