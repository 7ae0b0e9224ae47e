"""The interface of a Lean session, for both hosts.

A session has one Lean process and does one thing at a time. Its methods return results, also for
errors in Lean. They raise only usage errors and `LeanError`, when the request is impossible.
`cancel` is the one method that another thread may call meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.lean.session.answers import (
    AuditReport,
    CheckResult,
    Declaration,
    ProofState,
    SessionInfo,
    SessionLost,
    StepResult,
    TacticError,
    Timeout,
)
from treewright.lean.session.knowledge import Exploration, Knowledge, TestResult

DEFAULT_STEP_SECONDS = 10.0
DEFAULT_CHECK_SECONDS = 120.0


class LeanError(TreewrightError):
    """Lean does not start, or lost the state or process of a request."""


class SessionLostError(LeanError):
    """The Lean process is gone. Raised by calls that have no other way to say so."""


class MissingModule(UsageError):
    """A text imports a module that this Lean does not have."""


@runtime_checkable
class LeanSession(Protocol):
    """A Lean process with an imported environment."""

    @property
    def info(self) -> SessionInfo: ...

    @property
    def alive(self) -> bool: ...

    def start(self, statement: str, *, timeout: float = DEFAULT_STEP_SECONDS) -> StepResult:
        """Open a proof of a statement (a term, such as `∀ n : Nat, n + 0 = n`)."""
        ...

    def start_declaration(
        self, source: str, *, timeout: float = DEFAULT_CHECK_SECONDS
    ) -> StepResult:
        """Open a proof at the first `sorry` of a declaration's source, or of a declaration by
        name."""
        ...

    def run_tactic(
        self,
        state: ProofState | int,
        text: str,
        timeout: float = DEFAULT_STEP_SECONDS,
        *,
        heartbeats: int = 0,
    ) -> StepResult:
        """Run a tactic; `heartbeats` is a limit as `maxHeartbeats` has it, 0 for Lean's own."""
        ...

    def focus(self, state: ProofState | int, goals: Sequence[int]) -> StepResult:
        """Return the same state with some of its goals only, for a search of these goals alone."""
        ...

    def survey(self, state: ProofState | int, *, library: bool = False) -> Knowledge:
        """Return lemmas and facts for the first goal of a state; no tactic is run."""
        ...

    def test(self, state: ProofState | int) -> TestResult:
        """Try the first goal of a state on random values. Nothing is proved by that."""
        ...

    def explore(self, state: ProofState | int) -> Exploration:
        """Return equations between small terms over the functions of a state's first goal.

        They hold on random values; nothing is proved.
        """
        ...

    def check(
        self,
        source: str,
        *,
        sorries: bool = False,
        until: str = "",
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> CheckResult | Timeout | SessionLost:
        """Elaborate a whole text with its header, and give its declarations to the kernel.

        With `sorries` and `until`, the name of a declaration, a backend may end behind the last
        declaration of that name that has a `sorry`.
        """
        ...

    def audit(self, name: str) -> AuditReport | TacticError:
        """Return the axioms and constants that a declaration rests on."""
        ...

    def declarations(
        self, prefix: str = "", module: str = "", *, types: bool = True, plain: bool = False
    ) -> Iterator[Declaration]:
        """Return the imported declarations by name. `plain`: types in a quick, approximate form."""
        ...

    def free(self, states: Sequence[ProofState | int]) -> None: ...

    def cancel(self) -> None:
        """Interrupt the step that runs now, if there is one. The session can be used afterwards."""
        ...

    def close(self) -> None: ...
