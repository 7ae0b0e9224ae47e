"""Proof runs on disk for the tests of reports.

`python -m tests.proving.report_sample` rewrites the golden files.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from tests.proving.traces import AT, Line, search
from treewright.kernel.storage.run_directory import RunEnvironment
from treewright.proving.records import Iteration
from treewright.proving.report import write_report
from treewright.proving.settings import (
    FORMAT_VERSION,
    TRACE_VERSION,
    LeanRecord,
    Mode,
    RunRecord,
    Settings,
    StatementTarget,
    encode_document,
)

GOLDEN = Path(__file__).parent / "golden"
NASTY = '<script>alert("1")</script> | `x` ~~ \u202e & ```'


def write_sample(directory: Path, lines: list[Line], mode: Mode = "distributed") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    record = RunRecord(
        format_version=FORMAT_VERSION,
        trace_version=TRACE_VERSION,
        run_id="sample",
        created_at=AT,
        mode=mode,
        target=StatementTarget("True"),
        settings=Settings(mode=mode, seed=3),
        seeds={"search": 3},
        environment=RunEnvironment("0", "3.11", "somewhere", "host", []),
        lean=LeanRecord("synthetic", "4", ""),
    )
    (directory / "run.json").write_bytes(encode_document(record))
    data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    (directory / "trace.jsonl").write_bytes(data)
    return directory


def two_goals() -> list[Line]:
    """One with a hostile name that is solved, and one that is not; four agents, some blocked."""
    first = search(5, name=NASTY, statement=f"∀ x, {NASTY}", agents=4, blocked=0.2)
    count = sum(isinstance(line, Iteration) for line in first)
    second = search(6, goal=1, name="t1", first=count + 1, agents=4, blocked=0.2, limit=30)
    return [*first, *second]


def golden_files() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as scratch:
        run_dir = write_sample(Path(scratch), two_goals())
        write_report(run_dir)
        files = [run_dir / "report.md", *sorted((run_dir / "plots").iterdir())]
        return {file.name: file.read_text("utf-8") for file in files}


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for stale in GOLDEN.iterdir():
        stale.unlink()
    for name, text in golden_files().items():
        (GOLDEN / name).write_text(text, "utf-8")
