"""A miniature of lean.wasm: the functions that are patched, short but of the same form."""

from __future__ import annotations

from treewright.lean.hosts.wasm import module_patches
from treewright.lean.hosts.wasm.wasm_module import unsigned

ARRAY_SIZE = bytes.fromhex("4102744110 6a")  # i32.const 2; i32.shl; i32.const 16; i32.add
FLOAT_ARRAY_SIZE = bytes.fromhex("4103744110 6a")
# Types: the number of i32 parameters of functions with a result; and of those with nothing.
ONE, TWO, FOUR, NOTHING = 1, 2, 4, 5


def get(local: int) -> bytes:
    return bytes([0x20, local])


def functions() -> dict[str, tuple[int, bytes]]:
    """By exported name: the type, and the body."""
    arrays = get(0) + ARRAY_SIZE
    more = (get(0) + ARRAY_SIZE + b"\x1a") * (module_patches.ARRAY_SITES - 1)
    floats = get(0) + FLOAT_ARRAY_SIZE
    float_sites = (floats + b"\x1a") * (module_patches.FLOAT_ARRAY_SITES - 1)
    replicate = get(0) + bytes.fromhex("410274 2204 4110 6a")
    return {
        "array": (ONE, b"\0" + more + arrays + b"\x0b"),
        "floats": (ONE, b"\0" + float_sites + floats + b"\x0b"),
        "lean_internal_panic_out_of_memory": (NOTHING, b"\0\x00\x0b"),
        "mi_malloc": (ONE, b"\0" + get(0) + b"\x0b"),
        "mi_malloc_small": (ONE, b"\0" + get(0) + b"\x41\x01\x6a\x0b"),  # its argument and one
        "lean_mk_array": (TWO, b"\x01\x03\x7f" + replicate + b"\x0b"),
        "lean_io_prim_handle_read": (TWO, b"\0" + get(1) + b"\x0b"),
        "lean_io_get_random_bytes": (ONE, b"\0" + get(0) + b"\x0b"),
        "l_Lean_compileDecls": (FOUR, b"\0" + get(1) + b"\x0b"),  # whether errors are logged
    }


def _section(kind: int, entries: list[bytes]) -> bytes:
    content = unsigned(len(entries)) + b"".join(entries)
    return bytes([kind]) + unsigned(len(content)) + content


def _type(parameters: int, results: int = 1) -> bytes:
    return bytes([0x60, parameters, *[0x7F] * parameters, results, *[0x7F] * results])


def module(leave_out: str = "", **changes: bytes) -> bytes:
    """The bytes of the module, with other bodies for some functions or without one."""
    found = {name: item for name, item in functions().items() if name != leave_out}
    found |= {name: (found[name][0], body) for name, body in changes.items()}
    names = list(found)
    exports = [
        *(
            unsigned(len(name)) + name.encode() + bytes([0, 1 + names.index(name)])
            for name in names
        ),
        b"\x05table\x01\x00",
        b"\x05seven\x03\x00",
    ]
    return b"\0asm\1\0\0\0" + b"".join(
        [
            _section(1, [_type(1, 0), _type(1), _type(2), _type(3), _type(4), _type(0, 0)]),
            _section(2, [b"\x03env\x05other\x00\x01"]),  # a function of type 1
            _section(3, [bytes([kind]) for kind, _ in found.values()]),
            _section(4, [b"\x70\x00\x04"]),
            _section(6, [b"\x7f\x00\x41\x07\x0b"]),
            _section(7, exports),
            _section(9, [b"\x00\x41\x01\x0b\x01\x01"]),  # its first own function, at place 1
            _section(10, [unsigned(len(body)) + body for _, body in found.values()]),
        ]
    )
