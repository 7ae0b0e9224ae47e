"""The errors of Lean sessions, and the usual time limits."""

from __future__ import annotations

from treewright.kernel.errors import TreewrightError, UsageError

DEFAULT_STEP_SECONDS = 10.0
DEFAULT_CHECK_SECONDS = 120.0


class LeanError(TreewrightError):
    """Lean does not start, or lost the state or process of a request."""


class SessionLostError(LeanError):
    """The Lean process is gone. Raised by calls that have no other way to say so."""


class MissingModule(UsageError):
    """A text imports a module that this Lean does not have."""
