"""What Lean could not answer, as errors: no such thing may read like an answer."""

from __future__ import annotations

from treewright.kernel.errors import TreewrightError
from treewright.lean.session.answers import Cancelled, CheckResult, SessionLost, Timeout


class Fault(TreewrightError):
    """A time-out or a lost Lean: nothing is known about what was asked."""


def fault(result: Timeout | SessionLost | Cancelled) -> Fault:
    match result:
        case Timeout():
            return Fault(
                f"timed out: {result}, so nothing is known; give more seconds, or less to do"
            )
        case Cancelled():
            return Fault("cancelled: nothing is known")
        case SessionLost():
            return Fault(
                f"lost: {result}, so nothing is known; another one is started for the next call"
            )


def answered(result: CheckResult | Timeout | SessionLost) -> CheckResult:
    """The result, if Lean came to the end of the text."""
    if not isinstance(result, CheckResult):
        raise fault(result)
    if result.stopped:
        raise Fault(f"Lean stopped before the end of the text: {result.stopped}")
    return result
