"""Lean processes: sessions for proof steps, the check that may say "proved", and Lake projects.

What enters: Lean text, statements, tactics and paths of Lake projects. What leaves: proof states,
diagnostics, `sorry` positions, and verdicts with certificates. This package imports
`treewright.kernel` only; it knows no search trees and no language models.

- `session`: one Lean process and its requests.
- `verify`: the replay check, its verdict and its certificate.
- `hosts`: the two kinds of Lean, bundled (`wasm`) and the user's toolchain (`native`).
- `project`: the modules of a Lake project.
- `processes.py`: starts, lends, renews and ends Lean processes, for all other packages.
- `choice.py`: which Lean is used, and why. `sorries.py`: every `sorry` of a text, and its
  replacement.

Read first: `session/host_session.py`, `processes.py`, `verify/replayer.py`.
"""

from typing import TYPE_CHECKING

from treewright.kernel.exports import lazy_exports

if TYPE_CHECKING:
    from treewright.lean.hosts.wasm.install import ensure_installed
    from treewright.lean.processes import LeanProcesses, SessionLimits
    from treewright.lean.session.answers import CheckResult, ProofState
    from treewright.lean.session.host_session import HostSession
    from treewright.lean.sorries import extract as extract_sorries
    from treewright.lean.sorries import replace as replace_sorry
    from treewright.lean.verify.replayer import Replayer

_PUBLIC = {
    "CheckResult": ("treewright.lean.session.answers", "CheckResult"),
    "HostSession": ("treewright.lean.session.host_session", "HostSession"),
    "LeanProcesses": ("treewright.lean.processes", "LeanProcesses"),
    "ProofState": ("treewright.lean.session.answers", "ProofState"),
    "Replayer": ("treewright.lean.verify.replayer", "Replayer"),
    "SessionLimits": ("treewright.lean.processes", "SessionLimits"),
    "ensure_installed": ("treewright.lean.hosts.wasm.install", "ensure_installed"),
    "extract_sorries": ("treewright.lean.sorries", "extract"),
    "replace_sorry": ("treewright.lean.sorries", "replace"),
}

__all__ = [
    "CheckResult",
    "HostSession",
    "LeanProcesses",
    "ProofState",
    "Replayer",
    "SessionLimits",
    "ensure_installed",
    "extract_sorries",
    "replace_sorry",
]


if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__ = lazy_exports(__name__, _PUBLIC)
