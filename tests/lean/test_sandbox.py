"""Code that runs inside Lean and tries to get out. It must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.answers import CheckResult, SessionLost
from treewright.lean.session.host_session import HostSession

pytestmark = pytest.mark.xdist_group("lean-sandbox")


def outcome(lean: HostSession, text: str) -> str:
    """What Lean said, or how it ended."""
    result = lean.elaborate(text, timeout=10)
    if isinstance(result, CheckResult):
        return "\n".join(d.text for d in result.diagnostics)
    return f"lost: {result.reason}" if isinstance(result, SessionLost) else "timeout"


def show(action: str) -> str:
    return (
        "#eval show IO Unit from do\n"
        f'  try\n    {action}\n    IO.println "DONE"\n'
        '  catch e => IO.println s!"refused: {e}"'
    )


WRITES = {
    "write in the library": 'IO.FS.writeFile "/lean/lib/Init.olean" "x"',
    "write beside it": 'IO.FS.writeFile "/lean/lib/new.olean" "x"',
    "write in memory": 'IO.FS.writeFile "/tmp/x" "x"',
    "write to the root": 'IO.FS.writeFile "/x" "x"',
    "make a directory": 'IO.FS.createDir "/lean/lib/d"',
    "make a directory in memory": 'IO.FS.createDir "/d"',
    "remove a file": 'IO.FS.removeFile "/lean/lib/Init.olean"',
    "rename a file": 'IO.FS.rename "/lean/lib/Init.olean" "/lean/lib/x"',
    "remove the session's file": 'IO.FS.removeFile "/lean/treewright-session.lean"',
}


@pytest.mark.parametrize("action", WRITES.values(), ids=WRITES.keys())
def test_nothing_can_be_written(lean: HostSession, home: LeanHome, action: str) -> None:
    before = (home.path / "lib" / "Init.olean").stat()
    said = outcome(lean, show(action))
    assert "DONE" not in said
    assert "read-only" in said.lower() or "69" in said, said
    after = (home.path / "lib" / "Init.olean").stat()
    assert (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/proc/self/environ",
        "/lean/lib/../../etc/passwd",
        "/lean/lib/../lean.js",
        "../../../../etc/hostname",
        "/home",
        "/usr/bin/env",
    ],
)
def test_nothing_outside_can_be_read(lean: HostSession, path: str) -> None:
    said = outcome(lean, show(f'discard (IO.FS.readFile "{path}")'))
    assert "DONE" not in said
    assert "refused" in said, said


def test_the_library_can_be_read(lean: HostSession) -> None:
    assert "DONE" in outcome(lean, show('discard (IO.FS.readBinFile "/lean/lib/Init.olean")'))


def test_no_process_can_be_started(lean: HostSession, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    said = outcome(
        lean, show(f'discard (IO.Process.spawn {{ cmd := "touch", args := #["{witness}"] }})')
    )
    assert "DONE" not in said
    assert not witness.exists()


@pytest.mark.parametrize(
    ("symbol", "refusal"),
    [
        ("system", "the sandbox has no _emscripten_system"),
        # Functions imported from JavaScript are not symbols of the module.
        ("emscripten_run_script_int", "Could not find native implementation"),
        ("emscripten_run_script_string", "Could not find native implementation"),
    ],
)
def test_c_symbols_are_no_way_out(lean: HostSession, symbol: str, refusal: str) -> None:
    """Lean's interpreter calls C functions by their exported name. Unrestricted, this starts a
    shell or evaluates JavaScript in the Node process."""
    said = outcome(
        lean,
        f'@[export {symbol}, extern "{symbol}"] opaque escape (text : String) : Nat\n'
        '#eval escape "anything"',
    )
    assert refusal in said


def test_no_socket_can_be_opened(home: LeanHome) -> None:
    """Neither by the C function nor by Lean's own library for it."""
    with HostSession(home) as session:
        door = '@[export socket, extern "socket"] opaque door (a b c : Nat) : Nat\n#eval door 2 1 0'
        assert "the sandbox has no __syscall_socket" in outcome(session, door)
    with HostSession(home, imports=("Std.Internal.UV.TCP",)) as session:
        said = outcome(session, show("discard Std.Internal.UV.TCP.Socket.new"))
        assert "DONE" not in said
        assert "something else" not in said, "what C++ prints must not reach the protocol"


def test_the_environment_is_scrubbed(lean: HostSession, monkeypatch: pytest.MonkeyPatch) -> None:
    said = outcome(
        lean,
        '#eval show IO Unit from do\n  IO.println (repr (← IO.getEnv "PATH"))\n'
        '  IO.println (repr (← IO.getEnv "HOME"))\n'
        '  IO.println (repr (← IO.getEnv "TREEWRIGHT_RUNTIME"))',
    )
    assert "treewright" not in said
    assert "/root" not in said


def test_the_protocol_is_out_of_reach(lean: HostSession) -> None:
    """Lean code sees an empty stdin, and its output is not taken as a reply."""
    said = outcome(
        lean,
        "#eval show IO Unit from do\n"
        "  let line ← (← IO.getStdin).getLine\n"
        '  IO.println s!"read {line.length}"\n'
        '  (← IO.getStdout).putStrLn "{\\"id\\":1,\\"ok\\":true}"\n'
        '  (← IO.getStderr).putStrLn "{\\"id\\":2,\\"ok\\":true}"',
    )
    assert "read 0" in said
    assert lean.ping() >= 0


def test_the_node_process_may_not_write_or_spawn(home: LeanHome, tmp_path: Path) -> None:
    """The outer ring: Node's permission model, with the very flags a session runs under."""
    import subprocess

    from treewright.lean.hosts.wasm.home import node_flags

    script = (
        "try{require('fs').writeFileSync('%s','x');console.log('wrote')}catch(e){console.log(e.code)}"
        "try{require('child_process').execSync('true');console.log('ran')}catch(e){console.log(e.code)}"
        "try{require('fs').readFileSync('/etc/passwd');console.log('read')}catch(e){console.log(e.code)}"
    ) % (tmp_path / "x")
    said = subprocess.run(
        [home.node, *node_flags(home), "-e", script], capture_output=True, text=True, check=False
    ).stdout
    assert said.split() == ["ERR_ACCESS_DENIED"] * 3
