"""A process that read only headers compiles a module; code of two modules shares no process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import msgspec
import pytest

from tests.lean.projects import BASIC
from treewright.lean.hosts.wasm.compiler import WasmCompiler
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.process import LeanProcess
from treewright.lean.session.protocol import Compile, Headers, Judge, Provide, Renew

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


def test_a_process_that_read_headers_compiles_like_a_new_one(
    home: LeanHome, compiler: WasmCompiler
) -> None:
    with closing(WasmCompiler(lambda: home)) as own:
        alone = _compiled(own, BASIC)
    compiler.headers([BASIC, "import Foo.Some\n"])
    first = compiler.pid
    assert _compiled(compiler, BASIC) == alone
    assert compiler.pid == first


def test_a_compiler_that_ran_code_of_a_module_is_replaced(compiler: WasmCompiler) -> None:
    """Leftovers of its code: a thread that works on the memory may be unknown to Lean."""
    pids = []
    for text in (TRACES, BASIC, LOOKS):
        _compiled(compiler, text)
        pids.append(compiler.pid)
        compiler.headers([text])
        assert compiler.pid != pids[-1]
    assert len(set(pids)) == 3


def test_a_process_with_a_thread_is_not_renewed(home: LeanHome) -> None:
    process = LeanProcess(home)
    try:
        for request in (Provide(modules=[]), Compile(module="Foo.Some", text=THREAD)):
            assert process.request(request, soft=60.0, hard=90.0).ok
        refused = process.request(Renew(), soft=60.0, hard=90.0)
    finally:
        process.kill()
    assert "another thread works on this memory" in refused.error


def test_a_renewed_process_that_read_a_text_does_not_judge(home: LeanHome) -> None:
    process = LeanProcess(home)
    try:
        for request in (Headers(texts=[BASIC]), Renew()):
            assert process.request(request, soft=60.0, hard=90.0).ok
        text, names = msgspec.Raw(b'""'), msgspec.Raw(b"[]")
        question = Judge(
            data=text, allowed=[], targets=[], stated=names, separately=False,
            library=["Init"], original=text, implemented=names,
        )  # fmt: skip
        refused = process.request(question, soft=60.0, hard=90.0)
    finally:
        process.kill()
    assert "has read texts" in refused.error
