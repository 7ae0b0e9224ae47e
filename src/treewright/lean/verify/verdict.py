"""The `Verdict` of a replay check, its reasons, and its `Certificate`.

With the certificate another person can repeat the check: `treewright lean verify ORIGINAL
CANDIDATE` makes the same certificate from the same two texts.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal

import msgspec

from treewright.kernel.errors import TreewrightError

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

FORMAT_VERSION = 1
CHECKS = (
    "the candidate elaborates without errors, and what it adds stays within the policy",
    "terms were handed as data to a process that has not read the candidate",
    "everything the original declares is declared, and means the same",
    "no sorry, no axiom outside the allow-list, nothing unsafe or implemented elsewhere",
    "nothing makes the kernel run compiled code, imported definitions included",
    "the kernel took every declaration the targets rest on, those of imported project modules "
    "included, on top of the bare library",
)
NATIVE_CHECKS = (
    *CHECKS[:-1],
    "the kernel took every declaration the targets rest on, those of the project's own modules "
    "included, on top of the library and the packages; these count as they are compiled, and "
    "their axioms were looked for",
)
_FIRST_SOUND = (4, 33, 1)
_ALSO_UNSOUND = frozenset({(4, 34, 0)})  # it lacks the repair of 4.33.1, which 4.34.1 has
_UNSOUND = (
    "kernels before Lean 4.33.1, and that of 4.34.0, have known soundness bugs (lean4#14577, "
    "lean4#14613); this is one of them"
)


class NoVerdict(TreewrightError):
    """The check was lost, timed out, or its files changed: it says nothing about the candidate."""


class ModuleDigest(msgspec.Struct, frozen=True):
    """A module of the project that the original imports: sha256 of its text and compiled form."""

    name: str
    text: str
    compiled: str


class Certificate(msgspec.Struct, frozen=True):
    """The evidence for a verdict `proved`.

    `original` and `candidate` are the sha256 of the texts as UTF-8 with LF line ends; `home` is a
    sha256 over the files of the Lean that made the check.
    """

    lean: str
    commit: str
    treewright: str
    original: str
    candidate: str
    home: str
    targets: tuple[str, ...]
    axioms: tuple[str, ...]
    allowed_axioms: tuple[str, ...]
    filled: tuple[str, ...]
    constants: int
    checks: tuple[str, ...] = CHECKS
    warnings: tuple[str, ...] = ()
    modules: tuple[ModuleDigest, ...] = ()
    format_version: int = FORMAT_VERSION

    def to_json(self) -> bytes:
        """Return the certificate as an indented JSON document."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


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
        """Whether every target is proved."""
        return self.reason == "proved"

    @property
    def is_fault(self) -> bool:
        """Whether the check could not be made, so that nothing is known about the candidate."""
        return self.reason in FAULTS

    def __bool__(self) -> bool:
        return self.proved


def digest(text: str) -> str:
    """Return the sha256 of a text with LF line ends."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()


def kernel_warnings(lean: str) -> tuple[str, ...]:
    """Return the known soundness bugs of a Lean version's kernel."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", lean)
    version = tuple(map(int, found.groups() if found is not None else ()))
    return () if version >= _FIRST_SOUND and version not in _ALSO_UNSOUND else (_UNSOUND,)
