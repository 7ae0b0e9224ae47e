"""A process that compiled a module is as new for the next: same bytes, nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.lean.projects import BASIC
from treewright.lean.process import LeanProcess
from treewright.lean.wasm.compiler import WasmCompiler
from treewright.lean.wasm.home import LeanHome
from treewright.lean.workspace.project import CompileError

pytestmark = pytest.mark.xdist_group("lean-projects")

# Goes elsewhere, keeps a file open, and uses a megabyte of stack and some of memory.
TRACES = """
#eval show IO Unit from do
  IO.Process.setCurrentDir "/"
  discard <| IO.FS.Handle.mk "lean/lib/Init.olean" .read
  if (List.range 200000).foldr (· + ·) 0 == 1 then throw (IO.userError "")
def kept : Nat := 7
"""
LOOKS = """
#eval show IO Unit from do
  let place ← IO.currentDir
  if place.toString != "/lean" then throw (IO.userError s!"at {place}")
def looked : Nat := 8
"""
THREAD = "#eval show IO Unit from discard <| IO.asTask (pure ()) .dedicated\n"


@pytest.fixture
def compiler(home: LeanHome) -> Iterator[WasmCompiler]:
    with closing(WasmCompiler(lambda: home)) as made:
        yield made


def _compiled(compiler: WasmCompiler, text: str) -> bytes:
    return compiler.compile("Foo.Some", text, (), ())


def test_a_module_is_the_same_whatever_its_process_did_before(
    home: LeanHome, compiler: WasmCompiler
) -> None:
    alone = []
    for text in (BASIC, LOOKS):
        with closing(WasmCompiler(lambda: home)) as own:
            alone.append(_compiled(own, text))
    compiler.headers([BASIC, "import Foo.Some\n"])
    first = compiler.pid
    _compiled(compiler, TRACES)
    assert _compiled(compiler, BASIC) == alone[0]
    compiler.headers([TRACES])
    assert _compiled(compiler, LOOKS) == alone[1]
    with pytest.raises(CompileError, match="unknown module prefix 'Foo'"):
        _compiled(compiler, "import Foo.Basic\n")
    assert compiler.pid == first


def test_where_lean_has_started_a_thread_the_next_module_has_another_process(
    compiler: WasmCompiler,
) -> None:
    _compiled(compiler, THREAD)
    first = compiler.pid
    compiler.headers([BASIC])
    assert compiler.pid != first


def test_who_has_read_something_does_not_judge_however_new(home: LeanHome) -> None:
    process = LeanProcess(home)
    try:
        for op, fields in (("headers", {"texts": [BASIC]}), ("renew", {})):
            assert process.request(op, soft=60.0, hard=90.0, fields=fields).ok
        question = {
            "library": ["Init"], "original": "", "implemented": [], "data": "", "allowed": [],
            "targets": [], "stated": [], "separately": False,
        }  # fmt: skip
        refused = process.request("judge", soft=60.0, hard=90.0, fields=question)
    finally:
        process.kill()
    assert "has read texts" in refused.error
