"""Files that texts of a project include with `include_str "path"`.

Lean reads them while it elaborates the text. The bundled Lean sees no file of the project, so it
is given them. The path has to be one literal, relative to the directory of the text, and the file
has to be in the project.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_INCLUDE = re.compile(r'\binclude_str\s+"([^"\\\n]+)"')
_OTHER_PROJECTS = ".lake"
MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class IncludedFile:
    """A file, by the path that the text has for it."""

    path: str
    data: bytes = field(repr=False)

    def provided(self) -> dict[str, str]:
        """Return the file as a Lean process is given it."""
        return {"path": self.path, "content": base64.b64encode(self.data).decode()}


def included_files(text: str, directory: Path, root: Path) -> tuple[IncludedFile, ...]:
    """Return the files that a text in a directory includes, if they can be read.

    Args:
        root: the project; files outside are left out, and Lean then says that they are missing.
    """
    found = []
    for name in dict.fromkeys(_INCLUDE.findall(text)):
        place = (directory / name).resolve()
        if not place.is_relative_to(root.resolve()):
            continue
        try:
            if place.is_file() and place.stat().st_size <= MOST_BYTES:
                found.append(IncludedFile(name, place.read_bytes()))
        except OSError:
            continue
    return tuple(found)


def files_for_text(text: str, root: Path) -> tuple[IncludedFile, ...]:
    """Return the files that a text includes if only its project is known.

    The text may be an edited form of a file. Its directory is that of the one file of the project
    that includes the same paths; if several do, and mean different files, nothing is returned.
    """
    names = set(_INCLUDE.findall(text))
    if not names:
        return ()
    answers = {included_files(text, path.parent, root) for path in _including(names, root)}
    return answers.pop() if len(answers) == 1 else ()


def _including(names: set[str], root: Path) -> Iterator[Path]:
    """Yield the files of a project that include these paths."""
    for path in root.rglob("*.lean"):
        if _OTHER_PROJECTS in path.relative_to(root).parts:
            continue
        try:
            if names <= set(_INCLUDE.findall(path.read_text(encoding="utf-8"))):
                yield path
        except (OSError, UnicodeDecodeError):
            continue
