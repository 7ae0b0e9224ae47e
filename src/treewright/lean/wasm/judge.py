"""The judge: a Lean process that has never seen a candidate's text.

It imports what the original imports, elaborates the original, and decides on data that another
process exported. After each verdict it puts its memory back to what it was before, byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import msgspec

from treewright.lean.session import LeanError
from treewright.lean.types import Diagnostic, Ruling
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.process import LeanProcess, ProcessLost, Reply
from treewright.lean.wasm.session import IMPORT_SECONDS, hard_limit, missing_module

_EMPTY_TEXT = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """An elaborated original, and the judge that has it. Names are raw JSON, as it wrote them."""

    judge: Judge
    env: int
    targets: msgspec.Raw
    stated: msgspec.Raw
    unknown: tuple[str, ...]
    open: bool


class OriginalError(LeanError):
    """The original does not elaborate."""


class JudgeTimeout(LeanError):
    """The judge did not finish within its limit."""


class Judge:
    """One Lean process; one verdict at a time."""

    def __init__(self, home: LeanHome) -> None:
        self._process = LeanProcess(home)
        # Lean starts threads for some texts: memory cannot be put back underneath them.
        self._spent = False
        try:
            version = self._ask("version", 10.0)
            self.lean = version.lean.partition(",")[0]
            self.commit = version.commit
            self._ask("reference", IMPORT_SECONDS, text=_EMPTY_TEXT, targets=[])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether it can be asked about another original."""
        return self._process.alive and not self._spent

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def heap_bytes(self) -> int:
        return self._process.heap_bytes

    def reference(self, text: str, targets: Sequence[str], timeout: float) -> Reference:
        """Elaborates the original; what it declares, and which declarations are to be proved."""
        reply = self._ask("reference", timeout, text=text, targets=list(targets))
        self._spent = reply.spent
        if reply.stopped == "header":
            raise missing_module([d.text for d in reply.messages])
        problem = next((d for d in reply.messages if d.severity == "error"), None)
        if reply.env is None or problem is not None:
            raise OriginalError(_first_problem(reply, problem))
        return Reference(
            self,
            reply.env,
            reply.targets,
            reply.stated,
            reply.unknown,
            reply.targets != b"[]",
        )

    def rule(
        self, reference: Reference, data: msgspec.Raw, axioms: Iterable[str], timeout: float
    ) -> Ruling:
        """The ruling on exported data that is to prove the reference's targets."""
        asked = {"targets": reference.targets, "stated": reference.stated, "separately": False}
        (ruling,) = self._rule(reference, data, axioms, timeout, asked)
        return ruling

    def rule_each(
        self,
        reference: Reference,
        data: msgspec.Raw,
        axioms: Iterable[str],
        timeout: float,
        names: Sequence[str],
    ) -> tuple[Ruling, ...]:
        """A ruling for each name, without an original to compare with."""
        asked = {"targets": list(names), "stated": None, "separately": True}
        return self._rule(reference, data, axioms, timeout, asked)

    def _rule(
        self,
        reference: Reference,
        data: msgspec.Raw,
        axioms: Iterable[str],
        timeout: float,
        asked: dict[str, object],
    ) -> tuple[Ruling, ...]:
        return self._ask(
            "judge", timeout, env=reference.env, data=data, allowed=sorted(axioms), **asked
        ).rulings

    def close(self) -> None:
        self._process.kill()

    def _ask(self, op: str, timeout: float, **fields: object) -> Reply:
        try:
            importing = IMPORT_SECONDS if op == "reference" else 0.0
            reply = self._process.request(
                op, soft=timeout, hard=hard_limit(timeout) + importing, fields=fields
            )
        except ProcessLost as lost:
            raise LeanError(f"the judge is lost: {lost}") from lost
        if reply.kind in ("timeout", "cancelled"):
            raise JudgeTimeout(f"the judge did not finish in {timeout:g} s")
        if not reply.ok:
            raise LeanError(f"the judge could not go on: {reply.error}")
        return reply


def _first_problem(reply: Reply, problem: Diagnostic | None) -> str:
    return problem.format("original") if problem is not None else reply.stopped
