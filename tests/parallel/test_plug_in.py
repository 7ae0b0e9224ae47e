"""`tree` on an executor of a plug-in with workers in other processes: every request is sent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.parallel.harness import REAL, search
from tests.toy import ToyRepository
from tests.tree.steady.running import as_bytes
from treewright.kernel.executors import backends
from treewright.tree.run.parallelism import Parallelism
from treewright.tree.validation import validate

PLUG_IN = """
import contextlib, os, pickle, subprocess, sys
from treewright.kernel.executors.protocol import Done, Worker, WorkerLost
from treewright.kernel.executors.backends import Backend

WORKER = '''
import pickle, sys
from treewright.kernel.executors.protocol import Stop, stoppable_by
work, request = pickle.loads(sys.stdin.buffer.read())
with stoppable_by(Stop()):
    sys.stdout.buffer.write(pickle.dumps(work(request)))
'''
lost, pids = [], []

class Elsewhere:
    def __init__(self, work, capacity):
        self.capacity, self._work, self._under_way = capacity, work, []

    def submit(self, request):
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER], cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(pickle.dumps((self._work, request)))
        process.stdin.close()
        self._under_way.append((request, process))

    def next_done(self, timeout=None):
        if not self._under_way:
            return None
        request, process = self._under_way.pop(0)
        worker = Worker("elsewhere", process.pid)
        if not lost:
            lost.append(process.pid)
            process.kill()
        with process:
            data = process.stdout.read()
        if process.returncode != 0:
            return Done(request, None, WorkerLost("killed"), worker)
        pids.append(process.pid)
        return Done(request, pickle.loads(data), worker=worker)

    def cancel(self, request):
        for mine, process in self._under_way:
            if mine is request:
                process.kill()

    def close(self):
        for _, process in self._under_way:
            with process:
                process.kill()

@contextlib.contextmanager
def _open(place):
    yield lambda work: Elsewhere(work, place.capacity)

backend = Backend(_open, is_remote=True)
"""


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Install the plug-in as pip would."""
    place = tmp_path / "installed"
    info = place / "elsewhere-1.dist-info"
    info.mkdir(parents=True)
    (place / "elsewhere_plug_in.py").write_text(PLUG_IN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[treewright.executors]\nelsewhere = elsewhere_plug_in:backend\n"
    )
    monkeypatch.syspath_prepend(place)
    backends.BACKENDS.refresh()
    yield "elsewhere"
    backends.BACKENDS.refresh()
    del sys.modules["elsewhere_plug_in"]


def test_commits_are_sent_to_the_workers_of_a_plug_in(toy: ToyRepository, plug_in: str) -> None:
    """One worker is killed during the transfer, which is a fault and no verdict."""
    shape = replace(REAL, ideas_per_node=3, beam_width=1, max_depth=1)
    here = search(toy.path, "local", shape)
    there = search(toy.path, "away", shape, parallelism=Parallelism(2, plug_in))
    assert as_bytes(there) == as_bytes(here)
    assert validate(there, toy.path) == []
    import elsewhere_plug_in  # pyright: ignore[reportMissingImports]

    assert len(elsewhere_plug_in.pids) == 4  # three evaluations and a held-out sweep
    assert elsewhere_plug_in.lost
