"""Runs the runtime's own JavaScript tests with the Node that sessions use."""

from __future__ import annotations

import subprocess
from pathlib import Path

from treewright.lean.wasm.home import find_node

HERE = Path(__file__).parent


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
    files = sorted((HERE.parents[1] / "src" / "treewright" / "lean" / "runtime").glob("*.js"))
    assert len(files) > 10
    for path in files:
        lines = path.read_text().splitlines()
        assert len(lines) < 320, path.name
        assert lines[0] == "'use strict';", path.name
        assert lines[1].startswith("/**"), path.name
