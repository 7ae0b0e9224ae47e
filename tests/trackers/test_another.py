"""The snippet of docs/trackers.md for another tracker, run as a notice runs it."""

from __future__ import annotations

import io
import json
import re
import struct
import sys
from pathlib import Path

import pytest

import treewright as package
from tests.toy import ToyRepository

pytestmark = pytest.mark.xdist_group("two-runs")
PAGE = (Path(__file__).parents[2] / "docs/trackers.md").read_text("utf-8")


def scalars(directory: Path) -> dict[int, float]:
    """Return the scalars of the only event file: records of a length, its checksum, data, their
    checksum."""
    from tensorboardX.proto import event_pb2

    (file,) = [path for path in directory.rglob("*") if path.is_file()]
    data, found = file.read_bytes(), {}
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        event = event_pb2.Event.FromString(data[12 : 12 + length])
        for value in event.summary.value:
            found[event.step] = value.simple_value
        data = data[16 + length :]
    return found


def test_the_snippet_writes_tensorboard_scalars(
    two_runs: ToyRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (snippet,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    assert len(snippet.splitlines()) <= 12, "with its comment"
    notice = json.dumps({"run_dir": str(two_runs.run_dir("two"))})
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        monkeypatch.setattr(sys, "stdin", io.StringIO(notice))
        exec(compile(snippet, "docs/trackers.md", "exec"), {"__name__": "__main__"})
    run = package.load_run(two_runs.run_dir("two"))
    assert isinstance(run, package.TreeRun)
    wanted = {
        int(row["eval_id"][1:]): pytest.approx(row["score"], rel=1e-6)
        for row in run.evaluations.rows()
        if row["score"] is not None
    }
    assert scalars(tmp_path / "tensorboard" / "two") == wanted
