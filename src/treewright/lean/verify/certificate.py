"""The certificate of a verdict, so that another person can repeat the check.

`treewright lean verify ORIGINAL CANDIDATE` makes the same certificate from the same two texts.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

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
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def checks_of(backend: str) -> tuple[str, ...]:
    """Return the list of checks that this kind of Lean makes."""
    return NATIVE_CHECKS if backend == "native" else CHECKS


def digest(text: str) -> str:
    """Return the sha256 of a text with LF line ends."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()


def kernel_warnings(lean: str) -> tuple[str, ...]:
    """Return the known soundness bugs of a Lean version's kernel."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", lean)
    version = tuple(map(int, found.groups() if found is not None else ()))
    return () if version >= _FIRST_SOUND and version not in _ALSO_UNSOUND else (_UNSOUND,)
