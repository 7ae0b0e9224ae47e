"""Reading and editing a WebAssembly module: as much of the format as the patches need.

Functions can be found by their exported name, given another body, or appended; one short piece
of code can be replaced by another of the same length everywhere. Nothing is disassembled, so
137 MB take a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from treewright.kernel.errors import TreewrightError

I32, I64 = 0x7F, 0x7E
_TYPE, _IMPORT, _FUNCTION, _TABLE, _GLOBAL, _EXPORT, _ELEMENT, _CODE = 1, 2, 3, 4, 6, 7, 9, 10
_HEADER = b"\0asm\1\0\0\0"
_FUNCTION_KIND, _GLOBAL_KIND = 0, 3
_ONE_TABLE_OF_FUNCTIONS = b"\1\x70\0"  # without an upper limit
_I32_CONST, _END = 0x41, 0x0B


class ModuleError(TreewrightError):
    """The bytes are not the module that was expected."""


def unsigned(value: int, width: int = 0) -> bytes:
    """LEB128, padded to `width` bytes if given."""
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        if value or len(out) + 1 < width:
            out.append(low | 0x80)
        else:
            out.append(low)
            return bytes(out)


def signed(value: int) -> bytes:
    """Signed LEB128, as constants in code are written."""
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        done = (value == 0 and not low & 0x40) or (value == -1 and low & 0x40)
        out.append(low if done else low | 0x80)
        if done:
            return bytes(out)


def read_unsigned(data: bytes, at: int) -> tuple[int, int]:
    """A LEB128 number and where it ends."""
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return result, at


def read_signed(data: bytes, at: int) -> tuple[int, int]:
    """A signed LEB128 number and where it ends."""
    value, end = read_unsigned(data, at)
    bits = 7 * (end - at)
    return (value - (1 << bits) if value >> (bits - 1) else value), end


@dataclass(frozen=True, slots=True)
class Export:
    """One entry of the export section; `entry` is how it is written there."""

    name: bytes
    kind: int
    index: int
    entry: bytes

    @property
    def is_function(self) -> bool:
        return self.kind == _FUNCTION_KIND

    @property
    def is_global(self) -> bool:
        return self.kind == _GLOBAL_KIND


class Module:
    """A module whose functions can be exchanged."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(_HEADER):
            raise ModuleError("this is not a WebAssembly module")
        self._sections: list[tuple[int, bytes]] = []
        at = len(_HEADER)
        try:
            while at < len(data):
                kind = data[at]
                size, start = read_unsigned(data, at + 1)
                self._sections.append((kind, data[start : start + size]))
                at = start + size
            self._imports = self._read_imports()
            kinds = [kind for _, kind in self._imports]
            self._imported = kinds.count(_FUNCTION_KIND)
            self._imported_globals = kinds.count(_GLOBAL_KIND)
            self._bodies = self._find_bodies()
        except (IndexError, StopIteration):
            raise ModuleError("this WebAssembly module is cut short") from None
        self._changed: dict[int, bytes] = {}
        self._appended: list[tuple[int, bytes]] = []  # (type, body)

    def _section(self, kind: int) -> bytes:
        return next(content for found, content in self._sections if found == kind)

    def _replace_section(self, kind: int, content: bytes) -> None:
        self._sections = [
            (found, content if found == kind else old) for found, old in self._sections
        ]

    def _read_imports(self) -> list[tuple[bytes, int]]:
        """The name and the kind of each import."""
        data = self._section(_IMPORT)
        count, at = read_unsigned(data, 0)
        found = []
        for _ in range(count):
            name = b""
            for _part in range(2):  # the module it comes from, and its name there
                length, at = read_unsigned(data, at)
                name = data[at : at + length]
                at += length
            kind = data[at]
            found.append((name, kind))
            at += 1
            if kind == _FUNCTION_KIND:
                _, at = read_unsigned(data, at)
            elif kind == _GLOBAL_KIND:  # its type and whether it can change
                at += 2
            else:  # a table (with its element type first) or a memory: limits
                at += kind == 1
                limits, at = read_unsigned(data, at)
                for _bound in range(1 + (limits & 1)):
                    _, at = read_unsigned(data, at)
        return found

    def _find_bodies(self) -> list[tuple[int, int]]:
        """Where each function's body begins in the code section, and its length."""
        data = self._section(_CODE)
        count, at = read_unsigned(data, 0)
        found = []
        for _ in range(count):
            size, start = read_unsigned(data, at)
            found.append((start, size))
            at = start + size
        return found

    def exported(self, name: str) -> int:
        """The index of the function that is exported by this name."""
        entry = unsigned(len(name)) + name.encode() + bytes([_FUNCTION_KIND])
        data = self._section(_EXPORT)
        if data.count(entry) != 1:
            raise ModuleError(f"there is no function {name}")
        return read_unsigned(data, data.index(entry) + len(entry))[0]

    def body(self, function: int) -> bytes:
        """Declarations of locals and code, as they are now."""
        number = function - self._imported
        if number in self._changed:
            return self._changed[number]
        start, size = self._bodies[number]
        return self._section(_CODE)[start : start + size]

    def set_body(self, function: int, body: bytes) -> None:
        self._changed[function - self._imported] = body

    def insert(self, function: int, code: bytes) -> None:
        """Puts code before all other code of a function."""
        body = self.body(function)
        groups, at = read_unsigned(body, 0)
        for _ in range(groups):
            _, at = read_unsigned(body, at)
            at += 1
        self.set_body(function, body[:at] + code + body[at:])

    def replace_everywhere(self, old: bytes, new: bytes) -> int:
        """Replaces code by code of the same length in functions not changed yet; how often."""
        if len(old) != len(new):
            raise ValueError("the code to be put there has another length")
        content = self._section(_CODE)
        self._replace_section(_CODE, content.replace(old, new))
        return content.count(old)

    def append(self, parameters: list[int], results: list[int], body: bytes) -> int:
        """A new function; its index."""
        self._appended.append((self.type_of(parameters, results), body))
        return self._imported + len(self._bodies) + len(self._appended) - 1

    def append_global(self) -> int:
        """A new i32 that can be changed and begins as 0; its index."""
        count, at = read_unsigned(self._section(_GLOBAL), 0)
        entry = bytes([I32, 1, 0x41, 0, 0x0B])
        content = unsigned(count + 1) + self._section(_GLOBAL)[at:] + entry
        self._replace_section(_GLOBAL, content)
        return self._imported_globals + count

    def export(self, name: str, function: int) -> None:
        count, at = read_unsigned(self._section(_EXPORT), 0)
        entry = unsigned(len(name)) + name.encode() + bytes([_FUNCTION_KIND]) + unsigned(function)
        self._replace_section(_EXPORT, unsigned(count + 1) + self._section(_EXPORT)[at:] + entry)

    def export_changing_globals(self, prefix: str) -> None:
        """Exports every global of the module that can change, by its index."""
        count, at = read_unsigned(self._section(_EXPORT), 0)
        entries = []
        for number in self._changing_globals():
            name = f"{prefix}{number}".encode()
            entries.append(unsigned(len(name)) + name + bytes([_GLOBAL_KIND]) + unsigned(number))
        rest = self._section(_EXPORT)[at:]
        self._replace_section(_EXPORT, unsigned(count + len(entries)) + rest + b"".join(entries))

    @property
    def import_names(self) -> set[bytes]:
        return {name for name, _ in self._imports}

    def exports(self) -> list[Export]:
        data = self._section(_EXPORT)
        count, at = read_unsigned(data, 0)
        found = []
        for _ in range(count):
            start = at
            length, at = read_unsigned(data, at)
            name = data[at : at + length]
            kind = data[at + length]
            index, at = read_unsigned(data, at + length + 1)
            found.append(Export(name, kind, index, data[start:at]))
        return found

    def set_exports(self, exports: Sequence[Export]) -> None:
        entries = b"".join(export.entry for export in exports)
        self._replace_section(_EXPORT, unsigned(len(exports)) + entries)

    def constant_globals(self) -> dict[int, int]:
        """The values of the globals that begin as an i32 constant, by index."""
        return {number: value for number, _, value in self._globals() if value is not None}

    def _changing_globals(self) -> list[int]:
        return [number for number, changes, _ in self._globals() if changes]

    def _globals(self) -> Iterator[tuple[int, bool, int | None]]:
        """Index, whether it can change, and the i32 constant that it begins as, of each."""
        data = self._section(_GLOBAL)
        count, at = read_unsigned(data, 0)
        for number in range(count):
            changes = data[at + 1] == 1  # behind its type
            at += 2
            value = None
            if data[at] == _I32_CONST:
                read, end = read_signed(data, at + 1)
                value = read & 0xFFFFFFFF
            else:
                end = data.index(_END, at)
            if data[end] != _END:
                raise ModuleError("a global begins with something that is computed")
            yield self._imported_globals + number, changes, value
            at = end + 1

    @property
    def table_size(self) -> int:
        data = self._section(_TABLE)
        if not data.startswith(_ONE_TABLE_OF_FUNCTIONS):
            raise ModuleError("there is not one table of functions without a limit")
        return read_unsigned(data, len(_ONE_TABLE_OF_FUNCTIONS))[0]

    def table_places(self) -> dict[int, int]:
        """Where each function is that the table begins with."""
        data = self._section(_ELEMENT)
        count, at = read_unsigned(data, 0)
        places: dict[int, int] = {}
        for _ in range(count):
            if data[at : at + 2] != bytes([0, _I32_CONST]):
                raise ModuleError("a part of the table is not where a constant says")
            place, at = read_signed(data, at + 2)
            length, at = read_unsigned(data, at + 1)  # behind the end of the constant
            for number in range(length):
                function, at = read_unsigned(data, at)
                places.setdefault(function, place + number)
        return places

    def extend_table(self, functions: Iterable[int]) -> int:
        """Puts functions at the end of the table; where the first of them is."""
        first = self.table_size
        indices = [unsigned(function) for function in functions]
        size = unsigned(first + len(indices))
        self._replace_section(_TABLE, _ONE_TABLE_OF_FUNCTIONS + size)
        count, at = read_unsigned(self._section(_ELEMENT), 0)
        place = bytes([0, _I32_CONST]) + signed(first) + bytes([_END])
        segment = place + unsigned(len(indices)) + b"".join(indices)
        rest = self._section(_ELEMENT)[at:]
        self._replace_section(_ELEMENT, unsigned(count + 1) + rest + segment)
        return first

    def type_of(self, parameters: list[int], results: list[int]) -> int:
        """The index of a type of functions, which some function of the module must have."""
        data = self._section(_TYPE)
        count, at = read_unsigned(data, 0)
        for index in range(count):
            at += 1  # the mark of a function type
            signature = []
            for _ in range(2):
                length, at = read_unsigned(data, at)
                signature.append(list(data[at : at + length]))
                at += length
            if signature == [parameters, results]:
                return index
        raise ModuleError(f"no function has the type {parameters} -> {results}")

    def encode(self) -> bytes:
        out = [_HEADER]
        for kind, content in self._sections:
            pieces = [content]
            if kind == _FUNCTION:
                count, at = read_unsigned(content, 0)
                types = b"".join(unsigned(number) for number, _ in self._appended)
                pieces = [unsigned(count + len(self._appended)), content[at:], types]
            elif kind == _CODE:
                pieces = self._code_pieces(content)
            out += [bytes([kind]), unsigned(sum(map(len, pieces))), *pieces]
        return b"".join(out)

    def _code_pieces(self, content: bytes) -> list[bytes]:
        count, copied = read_unsigned(content, 0)
        pieces = [unsigned(count + len(self._appended))]
        for number in sorted(self._changed):
            start, size = self._bodies[number]
            prefix = start - len(unsigned(size))
            body = self._changed[number]
            pieces += [content[copied:prefix], unsigned(len(body)), body]
            copied = start + size
        pieces.append(content[copied:])
        for _, body in self._appended:
            pieces += [unsigned(len(body)), body]
        return pieces
