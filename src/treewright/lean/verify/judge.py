"""The judge: a Lean process that reads no text and decides on terms sent as data.

`JudgingProcess` is the common part of the judge and of the process that reads originals
(`originals.py`). The judge imports the library only. No code of an original, of a candidate or of a
project has run in its memory. On the bundled host, both put their memory back after each answer to
the bytes that it had before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import msgspec

from treewright.lean.hosts.host import Host
from treewright.lean.project.project import Project
from treewright.lean.session import protocol
from treewright.lean.session.errors import LeanError
from treewright.lean.session.process import LacksCode, LeanProcess, ProcessLost, hard_limit
from treewright.lean.session.protocol import R, ReferenceReply, Request
from treewright.lean.verify.verdict import Verdict


@dataclass(frozen=True, slots=True)
class OriginalData:
    """An original as data for the judge.

    Args:
        library: the library modules that it imports.
        data: its declarations.
        implemented: its constants that compiled code implements.
    """

    library: tuple[str, ...]
    data: msgspec.Raw
    implemented: msgspec.Raw


class OriginalError(LeanError):
    """The original does not elaborate."""


class JudgeTimeout(LeanError):
    """The judge did not finish within its limit."""


class JudgingProcess:
    """One Lean process that answers one question at a time."""

    def __init__(self, host: Host, project: Project | None = None) -> None:
        self._host = host
        self._process = LeanProcess(host, project)
        # Lean starts threads for some texts. The memory under running threads cannot be put back,
        # so such a process answers about its last original only.
        self._spent = False
        try:
            version = self._ask(protocol.Version(), 10.0)
        except BaseException:
            self.close()
            raise
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
        """The id of the process."""
        return self._process.pid

    @property
    def heap_bytes(self) -> int:
        """The size of its heap after the last answer."""
        return self._process.heap_bytes

    def close(self) -> None:
        """End the process."""
        self._process.kill()

    def _ask(self, request: Request[R], timeout: float, importing: float = 0.0) -> R:
        """Return a reply. `importing` are seconds for imports, besides those for Lean."""
        hard = hard_limit(timeout) + importing
        try:
            reply = self._process.request(request, soft=timeout, hard=hard)
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
        reference: ReferenceReply,
        original: OriginalData,
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
        request = protocol.Judge(
            data=data,
            allowed=sorted(axioms),
            targets=reference.targets,
            stated=reference.stated,
            separately=False,
            library=original.library,
            original=original.data,
            implemented=original.implemented,
        )
        (verdict,) = self._rule(request, timeout)
        return verdict

    def rule_each(
        self,
        original: OriginalData,
        data: msgspec.Raw,
        axioms: Iterable[str],
        timeout: float,
        names: Sequence[str],
    ) -> tuple[Verdict, ...]:
        """Return a verdict for each name, without comparing it with an original."""
        request = protocol.Judge(
            data=data,
            allowed=sorted(axioms),
            targets=names,
            stated=None,
            separately=True,
            library=original.library,
            original=original.data,
            implemented=original.implemented,
        )
        return self._rule(request, timeout)

    def _rule(self, request: protocol.Judge, timeout: float) -> tuple[Verdict, ...]:
        reply = self._ask(request, timeout)
        try:
            return _decode_verdicts(reply.rulings)
        except msgspec.MsgspecError as error:
            raise LeanError(f"the judge did not answer with a verdict ({error})") from error


_decode_verdicts = msgspec.json.Decoder(tuple[Verdict, ...]).decode
