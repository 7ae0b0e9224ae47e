"""Judging: two Lean processes that have never seen a candidate's text.

`OriginalReader` imports what the original imports, elaborates it and says as data what it declares.
Code of the original and of its project's modules runs there. `Judge` has read nothing at all, so
that nobody's code has run in its memory: it imports the library and decides on the data of the
original and of the candidate; what a project declares comes with them. After each answer both put
their memory back to what it was before, byte by byte, on the host where memory is bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import msgspec

from treewright.lean.host import Host
from treewright.lean.host_session import IMPORT_SECONDS, hard_limit, missing_module
from treewright.lean.process import LacksCode, LeanProcess, ProcessLost, Reply
from treewright.lean.session import LeanError
from treewright.lean.types import Diagnostic, Ruling
from treewright.lean.wasm.feeding import ModuleFeed
from treewright.lean.workspace.project import Project

_EMPTY_TEXT = ""
Fields: TypeAlias = dict[str, object]
"""Of a request: the original, as a judge is told of it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An elaborated original, and who has it. Names are raw JSON, as it wrote them."""

    reader: OriginalReader
    env: int
    library: tuple[str, ...]
    targets: msgspec.Raw
    stated: msgspec.Raw
    unknown: tuple[str, ...]
    open: bool
    imports: tuple[str, ...]
    errors: tuple[Diagnostic, ...] = ()
    own: tuple[str, ...] = ()

    @property
    def is_held(self) -> bool:
        """Whether the reader still has it: it has read no other since."""
        return self.reader.holds(self)


class OriginalError(LeanError):
    """The original does not elaborate."""


class JudgeTimeout(LeanError):
    """The judge did not finish within its limit."""


class _Process:
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


class Judge(_Process):
    """Rules on data, and reads nothing."""

    def rule(
        self,
        reference: Reference,
        original: Fields,
        data: msgspec.Raw,
        axioms: Iterable[str],
        timeout: float,
    ) -> Ruling:
        """The ruling on exported data that is to prove the reference's targets."""
        asked = {"targets": reference.targets, "stated": reference.stated, "separately": False}
        (ruling,) = self._rule(original, data, axioms, timeout, asked)
        return ruling

    def rule_each(
        self,
        original: Fields,
        data: msgspec.Raw,
        axioms: Iterable[str],
        timeout: float,
        names: Sequence[str],
    ) -> tuple[Ruling, ...]:
        """A ruling for each name, without an original to compare with."""
        asked = {"targets": list(names), "stated": None, "separately": True}
        return self._rule(original, data, axioms, timeout, asked)

    def _rule(
        self,
        original: Fields,
        data: msgspec.Raw,
        axioms: Iterable[str],
        timeout: float,
        asked: dict[str, object],
    ) -> tuple[Ruling, ...]:
        allowed = sorted(axioms)
        return self._ask("judge", timeout, data=data, allowed=allowed, **original, **asked).rulings


class OriginalReader(_Process):
    """Reads originals, and says as data what they declare."""

    def __init__(self, home: Host, project: Project | None = None) -> None:
        self._project = project
        self._held: Reference | None = None
        self._text = ""
        self.read_ms = 0.0
        super().__init__(home)

    def _begin(self) -> None:
        self._feed = ModuleFeed(self._process, self._project)
        super()._begin()
        self._ask("reference", IMPORT_SECONDS, text=_EMPTY_TEXT, targets=[])

    def reference(self, text: str, targets: Sequence[str], timeout: float) -> Reference:
        """Elaborates the original; what it declares, and which declarations are to be proved."""
        self._held = None
        try:
            self._feed.prepare(text)
        except ProcessLost as lost:
            raise LeanError(f"the judge is lost: {lost}") from lost
        reply = self._ask("reference", timeout, text=text, targets=list(targets))
        self._spent = reply.spent
        if text != self._text:
            self._text, self.read_ms = text, reply.ms
        if reply.stopped == "header":
            raise missing_module(self._host, reply.messages)
        errors = tuple(d for d in reply.messages if d.severity == "error")
        if reply.env is None:
            raise OriginalError(errors[0].format("original") if errors else reply.stopped)
        if reply.trouble is not None:
            raise OriginalError(reply.trouble.format("original"))
        self._held = Reference(
            self,
            reply.env,
            reply.library,
            reply.targets,
            reply.stated,
            reply.unknown,
            reply.targets != b"[]",
            reply.imports,
            errors,
            reply.own,
        )
        return self._held

    def has_read(self, text: str) -> bool:
        """Whether it is this original that it read last."""
        return self._text == text and self._process.alive

    def holds(self, reference: Reference) -> bool:
        return self._held is reference and self._process.alive

    def meaning(self, reference: Reference, imported: msgspec.Raw, timeout: float) -> Fields:
        """What a judge is told of the original, for a candidate that rests on `imported` names."""
        names = [*_decode_names(reference.targets), *_decode_names(reference.stated)]
        own = msgspec.Raw(msgspec.json.encode(names))
        reply = self._ask("meaning", timeout, env=reference.env, names=own, imported=imported)
        library = list(reference.library)
        if odd := [name for name in library if not self._host.is_library(name)]:
            raise OriginalError(f"it imports {odd[0]}, which is no module of Lean's library")
        return {"library": library, "original": reply.original, "implemented": reply.implemented}


_decode_names = msgspec.json.Decoder(list[msgspec.Raw]).decode
