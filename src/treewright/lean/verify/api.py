"""`treewright.verify`: does a candidate prove what an original leaves open?

The same check as `treewright lean verify`, as a function. What it says is the replay check's word;
where that could not be made there is no verdict, and an exception says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from treewright.kernel.errors import UsageError, require_several
from treewright.lean.choice import choose, open_lean
from treewright.lean.session.interface import DEFAULT_CHECK_SECONDS
from treewright.lean.verify.replayer import Replayer
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
    """Whether every target is proved, says what it said, and rests on nothing that is not allowed.

    A `Path` is a file, a `str` is the text itself. Without `targets`, everything in the original
    that rests on `sorry` is one. `axioms` are allowed besides Lean's own three. The verdict is
    true where it is proved, and has the certificate then. Raises NoVerdict after a fault.
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
    with Replayer(host, axioms=allowed, project=project) as replayer:
        verdict = replayer.text(*texts, targets, declarations=True, timeout=timeout)
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
