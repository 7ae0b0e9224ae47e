"""What Lean users write: the texts in `snippets/`, and what Lean says of each.

A text begins at `-- snippet: NAME`. Lean takes it without an error unless it says otherwise:

    -- error: TEXT    Lean reports an error that contains the text
    -- says: TEXT     Lean says this in a message
    -- value: TEXT    the same, of code that is run: or that the bundled Lean has no code for it
    -- runs           code is run: where the bundled Lean has none and says so, errors may follow

The half that a hash of the name picks was put aside when they were written. The repairs were
found with the other half.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from treewright.lean.session.answers import Diagnostic

NO_CODE = "the bundled Lean has no code for"
Half = Literal["tuned", "held-out"]

_START = re.compile(r"^-- snippet: (.+)\n", re.MULTILINE)
_MARK = re.compile(r"^-- (error|says|value): ?(.*)$", re.MULTILINE)
_RUNS = re.compile(r"^-- runs$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Snippet:
    name: str
    text: str

    @property
    def half(self) -> Half:
        return "held-out" if hashlib.sha256(self.name.encode()).digest()[0] & 1 else "tuned"

    def problems(self, said: Sequence[Diagnostic]) -> list[str]:
        """What Lean should not have said, or should have."""
        marks = _MARK.findall(self.text)
        wrong = [text for kind, text in marks if kind == "error"]
        lacks_code = any(NO_CODE in m.text for m in said)
        excused = lacks_code and bool(_RUNS.search(self.text))
        found = []
        for message in said:
            allowed = excused or any(text in message.text for text in wrong)
            if message.severity == "error" and not allowed:
                found.append(message.format(self.name))
        for kind, text in marks:
            severe = [m for m in said if (m.severity == "error") == (kind == "error")]
            heard = any(text in m.text for m in severe)
            if not heard and not (kind == "value" and lacks_code):
                found.append(f"{self.name}: no {kind} {text!r}")
        return found


def snippets() -> Iterator[Snippet]:
    for path in sorted((Path(__file__).parent / "snippets").glob("*.lean")):
        _, *parts = _START.split(path.read_text(encoding="utf-8"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            yield Snippet(name, text)
