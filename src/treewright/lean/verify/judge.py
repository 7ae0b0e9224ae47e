"""The judge: a Lean process that reads no text and decides on terms sent as data.

`JudgingProcess` is the common part of the judge and of the process that reads originals
(`reader.py`). The judge imports the library only. No code of an original, of a candidate or of a
project has run in its memory. On the bundled host, both put their memory back after each answer to
the bytes that it had before.
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

if TYPE_CHECKING:
    from treewright.lean.verify.reader import Reference

Fields: TypeAlias = dict[str, object]
"""The fields of a request that describe the original to the judge."""


class OriginalError(LeanError):
    """The original does not elaborate."""


class JudgeTimeout(LeanError):
    """The judge did not finish within its limit."""


class JudgingProcess:
    """One Lean process that answers one question at a time."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._process = LeanProcess(host)
        # Lean starts threads for some texts. The memory under running threads cannot be put back,
        # so such a process answers about its last original only.
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
        """Whether the process can be asked about another original."""
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
    """Decides on exported data, and reads no text."""

    def rule(
        self,
        reference: Reference,
        original: Fields,
        data: msgspec.Raw,
        axioms: Iterable[str],
        timeout: float,
    ) -> Verdict:
        """Return the verdict on a candidate that has to prove the targets of an original.

        Args:
            reference: the original, with its targets.
            original: the original as data, from `OriginalReader.meaning`.
            data: the candidate's declarations as data.
            axioms: the axioms that the proof may rest on.
            timeout: seconds for Lean.
        """
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
        asked: Fields,
    ) -> tuple[Verdict, ...]:
        allowed = sorted(axioms)
        reply = self._ask("judge", timeout, data=data, allowed=allowed, **original, **asked)
        try:
            return _decode_verdicts(reply.rulings)
        except msgspec.MsgspecError as error:
            raise LeanError(f"the judge did not answer with a verdict ({error})") from error


_decode_verdicts = msgspec.json.Decoder(tuple[Verdict, ...]).decode
