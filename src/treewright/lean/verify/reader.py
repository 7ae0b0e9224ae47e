"""TODO"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from treewright.lean.hosts.host import Host
from treewright.lean.kept import Kept
from treewright.lean.project.module_feed import ModuleFeed
from treewright.lean.project.project import Project
from treewright.lean.session.answers import Diagnostic
from treewright.lean.session.host_session import IMPORT_SECONDS, missing_module
from treewright.lean.session.interface import LeanError
from treewright.lean.session.process import ProcessLost
from treewright.lean.verify.certificate import digest
from treewright.lean.verify.judge import Fields, JudgingProcess, OriginalError


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


class OriginalReader(JudgingProcess):
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
        self._ask("reference", IMPORT_SECONDS, text="", targets=[])

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


MOST_BYTES = 64 << 20
MOST = 500
WORTH_KEEPING_MS = 2000.0  # to start another takes half a second
_Key = tuple[str, tuple[str, ...]]


@dataclass(slots=True)
class Original:
    """One that was read, and what a judge was told of it, by what candidates rested on."""

    text: str
    targets: tuple[str, ...]
    reference: Reference
    meanings: dict[bytes, Fields] = field(default_factory=dict[bytes, Fields])
    size: int = 0


class Originals:
    """The least recently used go when there are too many, or too much of them."""

    def __init__(self, reader: Kept[OriginalReader]) -> None:
        self._reader = reader
        self._known: OrderedDict[_Key, Original] = OrderedDict()

    def get(self, text: str, targets: Sequence[str], timeout: float) -> Original:
        """Raises what `OriginalReader.reference` raises; such originals are read each time."""
        key = (digest(text), tuple(targets))
        known = self._known.get(key)
        if known is None:
            reference = self._reader_for(text).reference(text, targets, timeout)
            known = self._known[key] = Original(text, key[1], reference, size=len(text))
        self._known.move_to_end(key)
        self._trim()
        return known

    def meaning(self, original: Original, imported: msgspec.Raw, timeout: float) -> Fields:
        """What a judge is told of an original, for a candidate that rests on `imported` names."""
        wanted = bytes(imported)
        if wanted not in original.meanings:
            if not original.reference.is_held:
                reader = self._reader_for(original.text)
                original.reference = reader.reference(original.text, original.targets, timeout)
            reference = original.reference
            fields = reference.reader.meaning(reference, imported, timeout)
            original.meanings[wanted] = fields
            original.size += sum(len(v) for v in fields.values() if isinstance(v, msgspec.Raw))
        return original.meanings[wanted]

    def _reader_for(self, text: str) -> OriginalReader:
        """One that must read no other may still be asked about what it has read."""
        reader = self._reader.current
        return reader if reader is not None and reader.has_read(text) else self._reader.get()

    @property
    def needs_another_reader(self) -> bool:
        """Whether the next original needs another process, and this one's was read in no time."""
        reader = self._reader.current
        return reader is not None and not reader.alive and reader.read_ms < WORTH_KEEPING_MS

    def _trim(self) -> None:
        total = sum(known.size for known in self._known.values())
        while len(self._known) > 1 and (total > MOST_BYTES or len(self._known) > MOST):
            _, oldest = self._known.popitem(last=False)
            total -= oldest.size


_decode_names = msgspec.json.Decoder(list[msgspec.Raw]).decode
