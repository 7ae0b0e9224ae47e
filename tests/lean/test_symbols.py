"""Former exports are found as symbols; only exports that the script names stay."""

from __future__ import annotations

import base64
import json
import subprocess

from tests.lean import small_module
from treewright.lean.hosts.wasm import home, module_patches
from treewright.lean.hosts.wasm.home import find_node

_LOOK_UP = """
const [runtime, bytes, index, names] = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
const { readSymbols } = require(`${runtime}/symbols.js`);
const module = new WebAssembly.Module(Buffer.from(bytes, 'base64'));
const instance = new WebAssembly.Instance(module, { env: { other: (x) => x } });
const symbols = readSymbols(Buffer.from(new Uint8Array(Buffer.from(index, 'base64'))));
const all = symbols.exportsOf(instance.exports, instance.exports.table);
process.stdout.write(JSON.stringify({
  kept: Object.keys(instance.exports),
  lengths: names.map((name) => all[name]?.length ?? null),
  again: all.mi_malloc === all.mi_malloc,
  missing: [all.nothing === undefined, symbols.address('nothing'), symbols.address('')],
  called: all.mi_malloc_small(3),
  throughTable: instance.exports.table.get(symbols.address('mi_malloc_small'))(4),
  seven: [all.seven.value, symbols.address('seven')],
}));
"""


def test_all_symbols_are_found_and_few_are_exports() -> None:
    script = 'wasmExports["lean_mk_array"]; wasmExports["table"]'
    patched, index = module_patches.patch(small_module.module(), script)
    names = list(small_module.functions())
    request = json.dumps(
        [str(home.RUNTIME), *(base64.b64encode(x).decode() for x in (patched, index)), names]
    )
    done = subprocess.run(
        [find_node(), "-e", _LOOK_UP], input=request, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert sorted(found["kept"]) == ["lean_mk_array", "table", "treewright_global_1"]
    assert found["lengths"] == [
        {small_module.NOTHING: 0}.get(kind, kind) for kind, _ in small_module.functions().values()
    ]
    assert found["again"] is True
    assert found["missing"] == [True, 0, 0]
    assert found["called"] == 4
    assert found["throughTable"] == 5
    assert found["seven"] == [7, 7]
