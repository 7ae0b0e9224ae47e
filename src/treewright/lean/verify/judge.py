"""Judging: two Lean processes that have never seen a candidate's text.

`OriginalReader` imports what the original imports, elaborates it and says as data what it declares.
Code of the original and of its project's modules runs there. `Judge` has read nothing at all, so
that nobody's code has run in its memory: it imports the library and decides on the data of the
original and of the candidate; what a project declares comes with them. After each answer both put
their memory back to what it was before, byte by byte, on the host where memory is bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

import msgspec

from treewright.lean.hosts.host import Host
from treewright.lean.session.host_session import IMPORT_SECONDS, hard_limit
from treewright.lean.session.interface import LeanError
from treewright.lean.session.process import LacksCode, LeanProcess, ProcessLost, Reply
from treewright.lean.verify.verdict import Verdict

Fields: TypeAlias = dict[str, object]
"""Of a request: the original, as a judge is told of it."""


if TYPE_CHECKING:
    from treewright.lean.verify.reader import Reference


class OriginalError(LeanError):
    """The original does not elaborate."""


class JudgeTimeout(LeanError):
    """The judge did not finish within its limit."""


class JudgingProcess:
    """One Lean process; one question at a time."""

    def __init__(self, home: Host) -> None:
        self._host = home
        self._process = LeanProcess(home)
        # Lean starts threads for some texts: memory cannot be put back underneath them.
        self._spent = False
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        version = self._ask("version", 10.0)
        self.lean = version.lean.partition(",")[0]
        self.commit = version.commit

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

    def close(self) -> None:
        self._process.kill()

    def _ask(self, op: str, timeout: float, **fields: object) -> Reply:
        try:
            importing = IMPORT_SECONDS if op == "reference" else 0.0
            reply = self._process.request(
                op, soft=timeout, hard=hard_limit(timeout) + importing, fields=fields
            )
        except LacksCode as lack:
            raise OriginalError(str(lack)) from lack
        except ProcessLost as lost:
            raise LeanError(f"the judge is lost: {lost}") from lost
        if reply.kind in ("timeout", "cancelled"):
            raise JudgeTimeout(f"the judge did not finish in {timeout:g} s")
        if not reply.ok:
            raise LeanError(f"the judge could not go on: {reply.error}")
        return reply


class Judge(JudgingProcess):
    """Rules on data, and reads nothing."""

    def rule(
        self,
        reference: Reference,
        original: Fields,
        data: msgspec.Raw,
        axioms: Iterable[str],
        timeout: float,
    ) -> Verdict:
        """Return the verdict on exported data that has to prove the targets of the original."""
        asked = {"targets": reference.targets, "stated": reference.stated, "separately": False}
        (verdict,) = self._rule(original, data, axioms, timeout, asked)
        return verdict

    def rule_each(
        self,
        original: Fields,
        data: msgspec.Raw,
        axioms: Iterable[str],
        timeout: float,
        names: Sequence[str],
    ) -> tuple[Verdict, ...]:
        """Return a verdict for each name, without comparing it with an original."""
        asked = {"targets": list(names), "stated": None, "separately": True}
        return self._rule(original, data, axioms, timeout, asked)

    def _rule(
        self,
        original: Fields,
        data: msgspec.Raw,
        axioms: Iterable[str],
        timeout: float,
        asked: dict[str, object],
    ) -> tuple[Verdict, ...]:
        allowed = sorted(axioms)
        reply = self._ask("judge", timeout, data=data, allowed=allowed, **original, **asked)
        try:
            return _decode_verdicts(reply.rulings)
        except msgspec.MsgspecError as error:
            raise LeanError(f"the judge answered with something else ({error})") from error


_decode_verdicts = msgspec.json.Decoder(tuple[Verdict, ...]).decode
