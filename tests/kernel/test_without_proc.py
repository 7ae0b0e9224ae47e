"""Processes where there is no /proc, as on macOS: psutil finds them. The real psutil of this system
reads /proc itself; which of the two ways is taken is all that is pretended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until
from treewright.kernel.procs import process, proctree

LEAVES_ITS_SESSION = "import os, time; os.setsid(); print('left', flush=True); time.sleep(1000)"


@pytest.fixture(autouse=True)
def _no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proctree, "HAS_PROC", False)


def test_a_child_that_left_its_session_is_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = tmp_path / "leave.py"
    script.write_text(LEAVES_ITS_SESSION)
    line = f'"{sys.executable}" "{script}" & until grep -q left "{log}"; do sleep 0.1; done'
    done = process.run(line, cwd=tmp_path, log_path=log, owner="without-proc", timeout=120)
    assert done.ok, log.read_text()
    assert proctree.marked("without-proc:", prefix=True) == []


def test_processes_of_an_earlier_owner_are_killed_and_others_spared() -> None:
    children = []
    for owner in ("earlier:1", "spared:1"):
        environment = proctree.with_marker(os.environ, owner)
        children.append(subprocess.Popen(["sleep", "1000"], env=environment))
    earlier, spared = children
    with earlier, spared:
        until(lambda: proctree.marked("spared:", prefix=True) == [spared.pid])
        assert proctree.kill_marked("earlier:", spare="none:") == [earlier.pid]
        assert earlier.wait(120) != 0
        assert spared.poll() is None
        spared.kill()


def test_a_process_is_known_by_its_start() -> None:
    with subprocess.Popen(["sleep", "1000"]) as child:
        started = proctree.start_time(child.pid)
        assert started
        assert proctree.is_alive(child.pid, started)
        assert not proctree.is_alive(child.pid, "1.0"), "another that had its number"
        assert proctree.is_alive(child.pid, ""), "all that can be asked is whether one is there"
        child.kill()
        until(lambda: not proctree.is_alive(child.pid, started), what="a zombie does not live")
    assert not proctree.is_alive(child.pid, started)
    assert proctree.start_time(child.pid) == ""
