"""What originals say, each read once: a second verdict on the same original reads it from here.

Imports and the Lean home are the same for as long as a replay check lives, so the text and the
targets decide what is said. Data beyond the original's own, of project modules that a candidate
rests on, is asked for when a candidate needs it: the reader still has the original it read last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from treewright.lean.certificate import digest
from treewright.lean.judge import Fields, OriginalReader, Reference
from treewright.lean.kept import Kept

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
