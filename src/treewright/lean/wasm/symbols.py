"""The symbols of Lean, in a file beside the module instead of in its exports.

The module exports 201,110 names. For each of them the engine makes an object when the module is
instantiated, which is half of the time that Lean needs to start, and some hundreds are ever
used. So only those that `lean.js` names stay exports. Every exported function that has no place
in the module's table gets one, every constant has its address in memory already, and an index in a
file of its own says which is where; runtime/symbols.js reads it.

The index: how many symbols there are; for each symbol, in the order of their names as bytes,
where its name ends among the names; for each its value, twice the place in the table of a
function, or one more than twice the address of a constant; the names. All numbers have 32 bits,
the lowest byte first.
"""

from __future__ import annotations

import re
import struct

from treewright.lean.wasm.module import Module

_WORD = re.compile(rb"[\w$]+")


def move_exports(module: Module, script: str) -> bytes:
    """Takes the exports that `script` does not name out of the module; the index of all."""
    named = set(_WORD.findall(script.encode())) | module.import_names
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
