"""A unified diff for the change of one line, exact to the byte."""

from __future__ import annotations

_CONTEXT = 3
_NO_NEWLINE = b"\n\\ No newline at end of file\n"


def replace_range(path: str, source: bytes, start: int, end: int, replacement: str) -> str:
    """Return the patch that replaces `source[start:end]`, a range within one line.

    Lines end with LF only, as for git, so CR is part of the line.
    """
    first = source.rfind(b"\n", 0, start) + 1
    newline = source.find(b"\n", end)
    last = len(source) if newline < 0 else newline + 1
    changed = source[first:start] + replacement.encode("utf-8") + source[end:last]
    before, after = _lines(source[:first]), _lines(source[last:])
    head, tail = before[-_CONTEXT:], after[:_CONTEXT]
    position = len(before) - len(head) + 1
    length = len(head) + 1 + len(tail)
    parts = [
        f"--- {_header('a/' + path)}\n+++ {_header('b/' + path)}\n".encode(),
        f"@@ -{position},{length} +{position},{length} @@\n".encode(),
        *(_marked(b" ", line) for line in head),
        _marked(b"-", source[first:last]),
        _marked(b"+", changed),
        *(_marked(b" ", line) for line in tail),
    ]
    return b"".join(parts).decode("utf-8")


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    whole = [line + b"\n" for line in lines[:-1]]
    return [*whole, lines[-1]] if lines[-1] else whole


def _marked(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + _NO_NEWLINE


def _header(name: str) -> str:
    """Return a file name in the form that git reads.

    A name with special characters is quoted. A tab ends a name with a blank, because the blank
    would end the name otherwise.
    """
    if any(character in '"\\' or not character.isprintable() for character in name):
        escaped = "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}"
            for byte in name.encode("utf-8", "surrogateescape")
        )
        return f'"{escaped}"'
    return f"{name}\t" if " " in name else name
