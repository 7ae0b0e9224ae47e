"""A reader for the part of YAML that configurations of other programs are written in.

Mappings, sequences, scalars, quoted strings, block scalars (`|` and `>`) and flow sequences are
read; anchors, aliases and tags are text. That is enough for the keys that `init` carries over, and
saves a dependency.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

_KEY = re.compile(r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#'"\[\]{},][^#]*?)\s*:(?:\s+|$)""")
_COMMENT = re.compile(r"\s#.*$")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "false": False, "False": False,
}  # fmt: skip


class UnreadableYaml(ValueError):
    """A line is outside of the part of YAML that is read here."""


def read_yaml(text: str) -> Any:
    """Return the document as dictionaries, lists, strings, numbers, booleans and None.

    Raises:
        UnreadableYaml: a line cannot be read; the message names it.
    """
    reader = _Reader(text.expandtabs(2).splitlines())
    reader.skip_blank()
    return reader.block(reader.indent()) if reader.at < len(reader.lines) else {}


def look_up(document: Any, *keys: str) -> Any:
    """Return the value below these keys; None where there is none."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = ["" if line.startswith(("---", "%")) else line for line in lines]
        self.at = 0

    def skip_blank(self) -> None:
        while self.at < len(self.lines) and re.match(r"\s*(#|$)", self.lines[self.at]):
            self.at += 1

    def indent(self) -> int:
        line = self.lines[self.at]
        return len(line) - len(line.lstrip())

    def block(self, indent: int) -> Any:
        """Read the mapping or sequence that is indented by `indent`."""
        if self._is_item():
            return self._sequence(indent)
        found: dict[str, Any] = {}
        while self._goes_on(indent) and not self._is_item():
            match = _KEY.match(self.lines[self.at], indent)
            if match is None:
                raise UnreadableYaml(f"line {self.at + 1}: {self.lines[self.at].strip()[:60]!r}")
            found[str(_scalar(match[1]))] = self._value(match.end(), indent)
        return found

    def _sequence(self, indent: int) -> list[Any]:
        found: list[Any] = []
        while self._goes_on(indent) and self._is_item():
            line = self.lines[self.at]
            start = indent + 1 + len(line[indent + 1 :]) - len(line[indent + 1 :].lstrip())
            if _KEY.match(line, start) or line[start : start + 2] == "- ":
                self.lines[self.at] = " " * start + line[start:]
                found.append(self.block(start))
            else:
                found.append(self._value(start, indent))
        return found

    def _value(self, start: int, indent: int) -> Any:
        """Read the value behind a key or a dash, on its line or below it."""
        rest = self.lines[self.at][start:].strip()
        self.at += 1
        if rest[:1] in ("|", ">"):
            return self._block_scalar(rest, indent)
        if rest[:1] in ('"', "'"):
            return self._quoted(rest)
        if rest[:1] in ("[", "{"):
            return self._flow(rest)
        if rest and not rest.startswith("#"):
            return self._plain(_COMMENT.sub("", rest).rstrip(), indent)
        self.skip_blank()
        if self.at == len(self.lines):
            return None
        deeper = self.indent()
        if deeper > indent or (deeper == indent and self._is_item()):
            return self.block(deeper)
        return None

    def _plain(self, first: str, indent: int) -> Any:
        """Read a scalar without quotes, which may go on in lines that are indented further."""
        parts = [first]
        while self.at < len(self.lines) and self.lines[self.at].strip():
            if self.indent() <= indent or self.lines[self.at].lstrip().startswith("#"):
                break
            parts.append(_COMMENT.sub("", self.lines[self.at].strip()).rstrip())
            self.at += 1
        return _scalar(first) if len(parts) == 1 else " ".join(parts)

    def _block_scalar(self, header: str, indent: int) -> str:
        taken: list[str] = []
        while self.at < len(self.lines):
            if self.lines[self.at].strip() and self.indent() <= indent:
                break
            taken.append(self.lines[self.at])
            self.at += 1
        margin = min((len(x) - len(x.lstrip()) for x in taken if x.strip()), default=0)
        lines = [line[margin:].rstrip() for line in taken]
        while lines and not lines[-1]:
            lines.pop()
        if header.startswith("|"):
            return "\n".join(lines)
        return re.sub(r"(?<!\n)\n(?!\n)", " ", "\n".join(lines)).replace("\n\n", "\n")

    def _quoted(self, text: str) -> str:
        closed = r'"(?:[^"\\]|\\.)*"' if text[0] == '"' else r"'(?:[^']|'')*'"
        while not (match := re.match(closed, text)):
            if self.at == len(self.lines):
                raise UnreadableYaml(f"a string is not closed: {text[:60]!r}")
            text += " " + self.lines[self.at].strip()
            self.at += 1
        return str(_scalar(match[0]))

    def _flow(self, text: str) -> Any:
        while text.count("[") + text.count("{") > text.count("]") + text.count("}"):
            if self.at == len(self.lines):
                raise UnreadableYaml(f"brackets are not closed: {text[:60]!r}")
            text += " " + _COMMENT.sub("", self.lines[self.at].strip())
            self.at += 1
        inside = re.sub(r"\s#.*$", "", text).strip()[1:-1]
        parts = re.findall(r""""(?:[^"\\]|\\.)*"|'[^']*'|[^,\s][^,]*""", inside)
        if text[0] == "[":
            return [_scalar(part.strip()) for part in parts]
        pairs = (part.partition(":") for part in parts)
        return {str(_scalar(key.strip())): _scalar(value.strip()) for key, _, value in pairs}

    def _goes_on(self, indent: int) -> bool:
        self.skip_blank()
        return self.at < len(self.lines) and self.indent() == indent

    def _is_item(self) -> bool:
        return re.match(r"\s*-(\s|$)", self.lines[self.at]) is not None


def _scalar(text: str) -> Any:
    if text[:1] == '"':
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), text[1:-1])
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
