"""Makes `lean.wasm` trap where sizes would wrap around, and ask before it compiles declarations.

Lean computes the size of an array as `capacity * 4 + 16`. On a 32-bit heap a capacity of 2^30
gives 16 bytes, and total, error-free Lean code then reads and writes all of the memory. The
computation is a static inline function of Lean's C header, so it is all over the module; the
compiler always wrote the same six bytes for it, which are exactly those of a call.

Sizes are computed from two sorts of counts. Counts that a program names (capacities, `replicate`,
bytes to read) are checked where they enter. Counts of what is in memory already (strings that are
appended, arrays that grow, digits of big numbers) are at most 2^29 once no block may be larger
than that, and nothing computed from two of them wraps.

`Lean.compileDecls`, through which every declaration gets its code, asks a function of the server
first, if one is set (runtime/codegen.js). Which one is in a global of the module, not in memory.

Each patch says how often it applies; on any other package the build stops.
"""

from __future__ import annotations

import re
import struct

from treewright.lean.hosts.wasm.script_patches import PACKAGE, VERSION, PatchError
from treewright.lean.hosts.wasm.wasm_module import I32, Module, ModuleError, signed, unsigned

LARGEST_BLOCK = 1 << 29
LARGEST_SMALL_BLOCK = 512  # mimalloc's table of small sizes ends here where pointers have 32 bits
ARRAY_SITES = 624
FLOAT_ARRAY_SITES = 2
GATE = "treewright_gate_code_generation"
GLOBAL = "treewright_global_"  # what the module has outside of its memory: runtime/renewal.js

_HEADER_BYTES = 16
_ADD, _SUB, _SHL, _GT_U, _IF, _END, _UNREACHABLE = 0x6A, 0x6B, 0x74, 0x4B, 0x04, 0x0B, 0x00
_NO_RESULT = 0x40


def _const(value: int) -> bytes:
    return b"\x41" + signed(value)


def _get(local: int) -> bytes:
    return b"\x20" + unsigned(local)


def _call(function: int, width: int = 0) -> bytes:
    return b"\x10" + unsigned(function, width)


def _above(local: int, limit: int, then: bytes) -> bytes:
    """If the local, unsigned, is above the limit: then."""
    return bytes([*_get(local), *_const(limit), _GT_U, _IF, _NO_RESULT, *then, _END])


def _shifted(shift: int) -> bytes:
    """Of the count on the stack, the size: `count << shift`, and the object's header."""
    return bytes([*_const(shift), _SHL, *_const(_HEADER_BYTES), _ADD])


def _expect(found: int, expected: int, what: str) -> None:
    if found != expected:
        raise PatchError(
            f"cannot patch lean.wasm of {PACKAGE}: {what} should be there {expected} times and is "
            f"there {found} times; this treewright needs {PACKAGE} {VERSION} exactly"
        )


def _fail(module: Module) -> bytes:
    """Ends the program as Lean does when there is no memory."""
    return _call(module.exported("lean_internal_panic_out_of_memory")) + bytes([_UNREACHABLE])


def _checked_size(module: Module, shift: int) -> int:
    """A function from a count to a size, which traps if the size has more than 32 bits."""
    largest = (0xFFFFFFFF - _HEADER_BYTES) >> shift
    check = _above(0, largest, _fail(module))
    body = b"\0" + check + _get(0) + _shifted(shift) + bytes([_END])
    return module.append([I32], [I32], body)


def _check_array_sizes(module: Module) -> None:
    for shift, sites, what in (
        (2, ARRAY_SITES, "the size of an array"),
        (3, FLOAT_ARRAY_SITES, "the size of an array of floats"),
    ):
        checked = _checked_size(module, shift)
        inlined = _shifted(shift)
        _expect(module.replace_everywhere(inlined, _call(checked, len(inlined) - 1)), sites, what)
        if shift == 2:
            _check_replicate(module, checked)


def _check_replicate(module: Module, checked_size: int) -> None:
    """`lean_mk_array` keeps the size without the header as well, in its local 4."""
    function = module.exported("lean_mk_array")
    keep = b"\x22\x04"
    old = bytes([*_const(2), _SHL, *keep, *_const(_HEADER_BYTES), _ADD])
    new = bytes([*_call(checked_size), *_const(_HEADER_BYTES), _SUB, *keep])
    new += bytes([*_const(_HEADER_BYTES), _ADD])
    body = module.body(function)
    _expect(body.count(old), 1, "the size of a replicated array")
    module.set_body(function, body.replace(old, new))


def _bound_blocks(module: Module) -> None:
    malloc = module.exported("mi_malloc")
    module.insert(malloc, _above(0, LARGEST_BLOCK, _fail(module)))
    # It has a table by size and no check: a constructor of 130 fields was given a block of another
    # size. What is not small is for the other function.
    small = module.exported("mi_malloc_small")
    instead = bytes([*_get(0), *_call(malloc), 0x0F])
    module.insert(small, _above(0, LARGEST_SMALL_BLOCK, instead))
    # These add a header to a number of bytes that the program names.
    for name, parameter in (("lean_io_prim_handle_read", 1), ("lean_io_get_random_bytes", 0)):
        check = _above(parameter, LARGEST_BLOCK, _fail(module))
        module.insert(module.exported(name), check)


def _gate_code_generation(module: Module) -> None:
    gate = unsigned(module.append_global())
    setter = b"\0" + _get(0) + b"\x24" + gate + bytes([_END])
    module.export(GATE, module.append([I32], [], setter))
    arguments = b"".join(_get(local) for local in range(4))
    kind = unsigned(module.type_of([I32] * 4, [I32]))
    ask = arguments + b"\x23" + gate + b"\x11" + kind + b"\0"
    # The answer takes the place of "log errors", 0 or 1, unless it is a result.
    answer = b"\x21" + unsigned(1) + _above(1, 1, _get(1) + b"\x0f")
    code = b"\x23" + gate + bytes([_IF, _NO_RESULT]) + ask + answer + bytes([_END])
    module.insert(module.exported("l_Lean_compileDecls"), code)


_SCRIPT_WORD = re.compile(rb"[\w$]+")


def move_exports(module: Module, script: str) -> bytes:
    """Takes the exports that `script` does not name out of the module; the index of all."""
    named = set(_SCRIPT_WORD.findall(script.encode())) | module.import_names
    exports = module.exports()
    places = module.table_places()
    exported = dict.fromkeys(export.index for export in exports if export.is_function)
    functions = [function for function in exported if function not in places]
    first = module.extend_table(functions)
    places |= {function: first + number for number, function in enumerate(functions)}
    constants = module.constant_globals()
    values = {}
    for export in exports:
        if export.is_function:
            values[export.name] = places[export.index] << 1
        elif export.is_global and export.index in constants:
            values[export.name] = constants[export.index] << 1 | 1
    module.set_exports(
        [
            export
            for export in exports
            if export.name in named or not (export.is_function or export.is_global)
        ]
    )
    return _index(values)


def _index(values: dict[bytes, int]) -> bytes:
    names = sorted(values)
    ends, end = [], 0
    for name in names:
        end += len(name)
        ends.append(end)
    numbers = [len(names), *ends, *(values[name] for name in names)]
    return struct.pack(f"<{len(numbers)}I", *numbers) + b"".join(names)


def patch(data: bytes, script: str) -> tuple[bytes, bytes]:
    """The `lean.wasm` that treewright runs, with the patched `lean.js`; and its symbols' index."""
    try:
        module = Module(data)
        _check_array_sizes(module)
        _bound_blocks(module)
        _gate_code_generation(module)
        index = move_exports(module, script)
        module.export_changing_globals(GLOBAL)
        return module.encode(), index
    except ModuleError as error:
        raise PatchError(
            f"cannot patch lean.wasm of {PACKAGE}: {error}; this treewright needs "
            f"{PACKAGE} {VERSION} exactly"
        ) from error
