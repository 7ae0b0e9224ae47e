"""Proof runs: their trace in parts, continued runs, damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dashboard import proof_runs
from treewright.dashboard import change_stream, proof_view
from treewright.dashboard.proof_view import LiveProof
from treewright.dashboard.roots import Roots
from treewright.llm.usage import Usage
from treewright.llm.usage_log import UsageLog
from treewright.proving import layout


def opened(project: Path) -> LiveProof:
    (run,) = Roots([project]).scan()
    return LiveProof(run).refresh()


def test_a_finished_proof_run_is_shown(tmp_path: Path) -> None:
    proof_runs.solved(tmp_path)
    found = proof_view.summary(opened(tmp_path))
    assert found["progress"] == {"done": 1, "of": 1, "proved": 1}
    assert found["liveness"].state == "stopped"
    assert found["liveness"].detail == "1 of 1 goals proved"
    assert found["iterations"] == 4


@pytest.mark.parametrize(
    ("different", "shown"),
    [
        ({}, None),
        ({"mode": "centralized", "settings": {"policy": {"exploration": 1.2}}}, None),
        ({"mode": "centralized", "settings": {"policy": {"type": "beam"}}}, "beam"),
        ({"mode": "centralized", "settings": 3}, None),
    ],
)
def test_the_policy_of_one_searcher_is_shown(
    tmp_path: Path, different: dict[str, object], shown: str | None
) -> None:
    path = proof_runs.ProofRun(tmp_path).path / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **different}))
    assert proof_view.summary(opened(tmp_path))["policy"] == shown


def test_only_the_result_ends_a_proof_run(tmp_path: Path) -> None:
    """Between the first and the second goal of a file the trace looks finished."""
    run = proof_runs.ProofRun(tmp_path)
    run.write("verdict", goal=0, status="proved", iterations=1)
    found = proof_view.summary(opened(tmp_path))
    assert found["progress"] == {"done": 1, "of": None, "proved": 1}
    assert found["liveness"].state == "paused"
    run.end(1, 3, complete=False)
    found = proof_view.summary(opened(tmp_path))
    assert found["progress"] == {"done": 1, "of": 3, "proved": 1}
    assert found["liveness"].state == "paused", "interrupted"


def test_a_goal_that_lean_refused_has_only_a_verdict(tmp_path: Path) -> None:
    run = proof_runs.ProofRun(tmp_path)
    run.write("verdict", goal=1, status="ill_typed", detail="unknown identifier", iterations=0)
    run.write("verdict", goal=0, status="proved", iterations=1)
    run.end(1, 2)
    found = proof_view.summary(opened(tmp_path))
    assert found["progress"] == {"done": 2, "of": 2, "proved": 1}
    assert found["liveness"].detail == "1 of 2 goals proved"


def test_model_usage_is_shown_during_the_run(tmp_path: Path) -> None:
    run = proof_runs.ProofRun(tmp_path)
    live = opened(tmp_path)
    assert proof_view.summary(live)["usage"] is None
    log = UsageLog(run.path / layout.USAGE)
    log.add(Usage(100, 10, unpriced_tokens=110))
    log.add(Usage(1, 2, 0.5))
    assert proof_view.summary(live.refresh())["usage"] == {
        "answers": 2, "prompt_tokens": 101, "completion_tokens": 12, "cost_usd": 0.5,
        "unpriced_tokens": 110,
    }  # fmt: skip
    (run.path / layout.USAGE).unlink()
    (run.path / layout.USAGE).symlink_to("/dev/zero")
    assert proof_view.summary(live)["usage"] is None


def test_a_result_is_a_change(tmp_path: Path) -> None:
    run = proof_runs.ProofRun(tmp_path)
    roots = Roots([tmp_path])
    before = change_stream.read_signatures(roots, {None})
    run.end(0, 1)
    assert change_stream.read_signatures(roots, {None}) != before


def test_only_new_records_are_sent(tmp_path: Path) -> None:
    run = proof_runs.ProofRun(tmp_path)
    live = opened(tmp_path)
    first = live.records_since(None)
    assert (len(first["records"]), first["full"], first["more"]) == (1, True, False)
    run.iterate(0)
    live.refresh()
    second = live.records_since(first["version"])
    assert [record["iteration"] for record in second["records"]] == [1]
    assert not second["full"]
    assert live.records_since("9.1")["full"], "another reader's version"


def test_a_long_trace_comes_in_pieces(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(proof_view, "_PIECE_BYTES", 2000)
    run = proof_runs.ProofRun(tmp_path)
    for _ in range(30):
        run.iterate(0)
    live = opened(tmp_path)
    version, records = None, []
    while True:
        piece = live.records_since(version)
        assert len(json.dumps(piece)) < 6000
        records += piece["records"]
        version = piece["version"]
        if not piece["more"]:
            break
    assert len(records) == 31


def test_iterations_that_a_continued_run_repeats_replace_the_old_ones(tmp_path: Path) -> None:
    run = proof_runs.ProofRun(tmp_path)
    for _ in range(3):
        run.iterate(0)
    live = opened(tmp_path)
    before = live.records_since(None)["version"]
    run.iterations = 1
    run.iterate(0, epoch=2, value=0.9)
    live.refresh()
    after = live.records_since(before)
    assert after["full"], "what the page knows is no longer true"
    values = [(r["iteration"], r["value"]) for r in after["records"] if r["type"] == "iteration"]
    assert values == [(1, 0.4), (2, 0.9)]


def test_torn_old_and_damaged_lines_are_handled(tmp_path: Path) -> None:
    run = proof_runs.ProofRun(tmp_path)
    run.iterate(0, epoch=2)
    run.iterate(0, epoch=1)
    with (run.path / "trace.jsonl").open("a") as file:
        file.write('{"type": "iterat')
    live = opened(tmp_path)
    assert [record["type"] for record in live.records] == ["goal", "iteration"]
    assert live.problem == ""
    with (run.path / "trace.jsonl").open("a") as file:
        file.write("\n")
    run.iterate(0, epoch=2)
    assert "damaged" in live.refresh().problem
    assert proof_view.summary(live)["liveness"].state == "damaged"


def test_a_trace_that_links_outside_is_not_read(tmp_path: Path) -> None:
    run = proof_runs.ProofRun(tmp_path)
    outside = tmp_path / "outside.jsonl"
    (run.path / "trace.jsonl").rename(outside)
    (run.path / "trace.jsonl").symlink_to(outside)
    assert opened(tmp_path).records == []


def test_untried_candidates_are_left_out(tmp_path: Path) -> None:
    run = proof_runs.ProofRun(tmp_path)
    run.iterate(0, candidates=[{"tactic": f"t{i}"} for i in range(50)])
    record = opened(tmp_path).records[-1]
    assert "candidates" not in record
    assert record["candidate_count"] == 50
