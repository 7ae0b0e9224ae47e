"""The `Verdict` of a replay check, its reasons, and the axioms that need no permission."""

from __future__ import annotations

from typing import Literal

import msgspec

from treewright.kernel.errors import TreewrightError
from treewright.lean.verify.certificate import Certificate

DEFAULT_AXIOMS = frozenset({"propext", "Classical.choice", "Quot.sound"})

Reason = Literal[
    "proved",
    "unchanged",
    "escape",
    "error",
    "sorry",
    "missing",
    "statement",
    "axiom",
    "unsafe",
    "kernel",
    "data",
    "timeout",
    "lost",
    "stale",
    "original",
]
"""The reason of a verdict.

- `unchanged`: the candidate is the original.
- `escape`, `sorry`: the added text contains something that the restrictions forbid, or a `sorry`.
- `error`: the candidate has an error that the original does not have.
- `missing`, `statement`: something that the original declares is not declared, or with another
  meaning.
- `axiom`, `unsafe`: a target rests on an axiom that is not allowed, or on unsafe or executed code.
- `kernel`, `data`: the kernel refused a declaration, or the terms are too large or malformed.
- `original`: the original has nothing to prove, or an error that concerns a target.
- `timeout`, `lost`, `stale`: faults; a process was too slow or ended, or a file changed meanwhile.
"""
FAULTS = frozenset({"timeout", "lost", "stale"})
"""Reasons that say nothing about the candidate: a second check may end otherwise."""


class NoVerdict(TreewrightError):
    """The check was lost, timed out, or its files changed: it says nothing about the candidate."""


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of the replay check about one candidate text.

    The judge's reply is decoded into this record. The replay check adds the digests of the texts,
    the time and the certificate; no other field changes on the way to a report.

    Args:
        reason: `proved`, or the reason code of the refusal or of the fault.
        detail: the refusal or the fault in one line; empty if the targets are proved.
        axioms: the axioms that the targets rest on, or the axioms that were refused.
        ms: the milliseconds that Lean took to read the candidate.
        certificate: the evidence, if the check compared the candidate with an original.
        original: sha256 of the original text, as in a certificate.
        candidate: sha256 of the candidate text, as in a certificate.
        names: the targets, spelled as in the text.
        filled: the definitions with a `sorry` that the candidate filled.
        constants: the number of declarations that the kernel checked.
    """

    reason: Reason
    detail: str = ""
    axioms: tuple[str, ...] = ()
    ms: float = 0.0
    certificate: Certificate | None = None
    original: str = ""
    candidate: str = ""
    names: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    constants: int = 0

    @property
    def proved(self) -> bool:
        return self.reason == "proved"

    @property
    def is_fault(self) -> bool:
        """Whether the check could not be made, so that nothing is known about the candidate."""
        return self.reason in FAULTS

    def __bool__(self) -> bool:
        return self.proved
