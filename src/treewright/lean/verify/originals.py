"""The process that reads originals, and the cache of the originals that it has read.

Imports and the Lean installation do not change while a replay check exists, so the text and the
targets decide the data of an original. Data of project modules is requested when a candidate
rests on it; the process still has the original that it read last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from treewright.lean.hosts.host import Host
from treewright.lean.project.project import Project
from treewright.lean.session import protocol
from treewright.lean.session.errors import LeanError
from treewright.lean.session.host_session import IMPORT_SECONDS, missing_module
from treewright.lean.session.process import ProcessLost, RestartedProcess
from treewright.lean.session.protocol import ReferenceReply
from treewright.lean.verify.judge import JudgingProcess, OriginalData, OriginalError
from treewright.lean.verify.verdict import digest

MOST_BYTES = 64 << 20
MOST_ORIGINALS = 500
"""The cache drops the least recently used originals beyond these limits."""
WORTH_KEEPING_MS = 2000.0
"""A process is kept if its original took longer to read; a new one takes half a second."""
_Key = tuple[str, tuple[str, ...]]


class OriginalReader(JudgingProcess):
    """Reads originals, and exports their declarations as data.

    Code of the original and of its project's modules runs in this process.
    """

    def __init__(self, host: Host, project: Project | None = None) -> None:
        self._held: ReferenceReply | None = None
        self._text = ""
        self.read_ms = 0.0
        super().__init__(host, project)
        try:
            request = protocol.Reference(text="", targets=[])
            self._ask(request, IMPORT_SECONDS, importing=IMPORT_SECONDS)
        except BaseException:
            self.close()
            raise

    def reference(self, text: str, targets: Sequence[str], timeout: float) -> ReferenceReply:
        """Elaborate an original.

        Args:
            text: the original.
            targets: the declarations to prove (empty: every declaration that rests on `sorry`).
            timeout: seconds for Lean.

        Raises:
            OriginalError: the original does not elaborate, or an error concerns a target.
            JudgeTimeout: Lean did not finish in time.
            MissingModule: this Lean lacks an imported module.
        """
        self._held = None
        try:
            self._process.prepare(text)
        except ProcessLost as lost:
            raise LeanError(f"the judge is lost: {lost}") from lost
        request = protocol.Reference(text=text, targets=targets)
        reply = self._ask(request, timeout, importing=IMPORT_SECONDS)
        self._spent = reply.spent
        if text != self._text:
            self._text, self.read_ms = text, reply.ms
        if reply.stopped == "header":
            raise missing_module(self._host, reply.messages)
        if reply.env is None:
            raise OriginalError(
                reply.errors[0].format("original") if reply.errors else reply.stopped
            )
        if reply.trouble is not None:
            raise OriginalError(reply.trouble.format("original"))
        self._held = reply
        return reply

    def has_read(self, text: str) -> bool:
        """Whether this text is the last original that the process read."""
        return self._text == text and self._process.alive

    def holds(self, reference: ReferenceReply) -> bool:
        """Whether the process still has the original: it has not read another one since."""
        return self._held is reference and self._process.alive

    def meaning(
        self, reference: ReferenceReply, imported: msgspec.Raw, timeout: float
    ) -> OriginalData:
        """Return the original as data for the judge.

        Args:
            reference: the original; the process must still hold it.
            imported: names of project declarations that the candidate rests on.
            timeout: seconds for Lean.
        """
        assert reference.env is not None
        own = [*_decode_names(reference.targets), *_decode_names(reference.stated)]
        names = msgspec.Raw(msgspec.json.encode(own))
        request = protocol.Meaning(env=reference.env, names=names, imported=imported)
        reply = self._ask(request, timeout)
        if odd := [name for name in reference.library if not self._host.is_library(name)]:
            raise OriginalError(f"it imports {odd[0]}, which is no module of Lean's library")
        return OriginalData(reference.library, reply.original, reply.implemented)


@dataclass(slots=True)
class Original:
    """A cached original, and the process that read it last.

    `meanings` has its data for the judge, by the project declarations that a candidate rests on.
    """

    text: str
    targets: tuple[str, ...]
    reader: OriginalReader
    reference: ReferenceReply
    meanings: dict[bytes, OriginalData] = field(default_factory=dict[bytes, OriginalData])
    size: int = 0


class Originals:
    """A cache of originals. The least recently used originals are dropped first."""

    def __init__(self, reader: RestartedProcess[OriginalReader]) -> None:
        self._reader = reader
        self._known: OrderedDict[_Key, Original] = OrderedDict()

    def get(self, text: str, targets: Sequence[str], timeout: float) -> Original:
        """Return an original, read now if it is not cached.

        Raises what `OriginalReader.reference` raises; an original that fails is not cached.
        """
        key = (digest(text), tuple(targets))
        known = self._known.get(key)
        if known is None:
            reader = self._reader_for(text)
            reference = reader.reference(text, targets, timeout)
            known = self._known[key] = Original(text, key[1], reader, reference, size=len(text))
        self._known.move_to_end(key)
        total = sum(each.size for each in self._known.values())
        while len(self._known) > 1 and (total > MOST_BYTES or len(self._known) > MOST_ORIGINALS):
            _, oldest = self._known.popitem(last=False)
            total -= oldest.size
        return known

    def meaning(self, original: Original, imported: msgspec.Raw, timeout: float) -> OriginalData:
        """Return an original as data for the judge; see `OriginalReader.meaning`."""
        wanted = bytes(imported)
        if wanted not in original.meanings:
            if not original.reader.holds(original.reference):
                reader = original.reader = self._reader_for(original.text)
                original.reference = reader.reference(original.text, original.targets, timeout)
            data = original.reader.meaning(original.reference, imported, timeout)
            original.meanings[wanted] = data
            original.size += len(data.data) + len(data.implemented)
        return original.meanings[wanted]

    def _reader_for(self, text: str) -> OriginalReader:
        """Return the running process if this is its last original, else one that can read more."""
        reader = self._reader.current
        return reader if reader is not None and reader.has_read(text) else self._reader.get()

    @property
    def needs_another_reader(self) -> bool:
        """Whether the process cannot read a second original, and its original was read quickly."""
        reader = self._reader.current
        return reader is not None and not reader.alive and reader.read_ms < WORTH_KEEPING_MS


_decode_names = msgspec.json.Decoder(list[msgspec.Raw]).decode
