"""Runs the runtime's own JavaScript tests with the Node that sessions use."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

from treewright.lean.hosts.wasm.home import LeanHome, find_node

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "src" / "treewright" / "lean" / "hosts" / "wasm" / "runtime"
_LEAN_NAME = re.compile(r"'(l_\w+|lean_\w+)'")


def test_the_runtimes_own_tests_pass() -> None:
    done = subprocess.run(
        [find_node(), "--test", "--test-reporter=tap", HERE / "runtime.test.js"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout, done.stdout
    assert int(done.stdout.partition("# pass ")[2].split()[0]) > 20, done.stdout


def test_every_file_of_the_runtime_is_small_and_says_what_it_is() -> None:
    files = sorted(RUNTIME.glob("*.js"))
    assert len(files) > 10
    for path in files:
        lines = path.read_text().splitlines()
        assert len(lines) < 320, path.name
        assert lines[0] == "'use strict';", path.name
        assert lines[1].startswith("/**"), path.name


def _names(index: bytes) -> set[str]:
    """See `move_exports` in module_patches.py."""
    (count,) = struct.unpack_from("<I", index)
    ends = struct.unpack_from(f"<{count}I", index, 4)
    text = index[4 + 8 * count :]
    return {text[start:end].decode() for start, end in zip((0, *ends), ends, strict=False)}


def test_every_function_that_the_runtime_calls_is_there(home: LeanHome) -> None:
    """One that is not would end a session when it is first needed."""
    called = {
        name for path in RUNTIME.glob("*.js") for name in _LEAN_NAME.findall(path.read_text())
    }
    symbols = _names((home.path / "lean.symbols").read_bytes())
    missing = [name for name in sorted(called) if not {name, f"{name}___boxed"} & symbols]
    assert len(called) > 50
    assert not missing
