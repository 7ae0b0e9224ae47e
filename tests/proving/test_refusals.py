"""A script that the replay check rejects does not end the search: it is excluded, and recorded."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.proving.runs import Prove, SessionFactory, resume
from tests.proving.test_retry import CELLS, ENGINES, ONE, lines_of
from treewright.lean.verify.replayer import Replayer
from treewright.proving.records import GoalResult, Refusal
from treewright.proving.replay import replay_live, replay_offline
from treewright.proving.settings import Settings
from treewright.proving.tactics.factory import build_source
from treewright.proving.targets import parse
from treewright.proving.trace import read_trace
from treewright.search.andor.graph import Changes, Child, Graph, Status

pytestmark = pytest.mark.xdist_group("lean-session")

MAGIC = """\
axiom magic : ∀ n : Nat, n + 0 = n
axiom spell : ∀ n : Nat, n + 0 = n ∧ n = n
theorem claim (n : Nat) : n + 0 = n ∧ n = n := by
  sorry
"""
TACTICS = "exact spell n\nexact magic n\nrfl\nconstructor\n"


def with_tactics(settings: Settings, tactics: str = TACTICS) -> Settings:
    sources = msgspec.structs.replace(settings.sources, tactics=tactics, noise=0.0, known=False)
    return msgspec.structs.replace(settings, sources=sources)


def written(tmp_path: Path, text: str = MAGIC) -> Path:
    path = tmp_path / "Magic.lean"
    path.write_text(text)
    return path


@ENGINES
def test_the_search_goes_on_without_what_was_rejected(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path, settings: Settings
) -> None:
    settings = with_tactics(settings)
    result, directory = prove(parse(str(written(tmp_path)), None), settings)
    (goal,) = result.goals
    assert (goal.status, goal.detail) == ("proved", "")
    assert not {"magic", "spell"} & set(goal.proof.split())
    assert result.certificate is not None
    lines = read_trace(directory / "trace.jsonl")
    refused = [line for line in lines if isinstance(line, Refusal)]
    assert "spell" in refused[0].result.proof
    assert all(line.result.status == "rejected" for line in refused)
    assert all("axiom" in line.result.detail for line in refused)
    assert [line.status for line in lines if isinstance(line, GoalResult)] == ["proved"]
    source = build_source(settings)
    assert replay_offline(directory, source).difference == ""
    assert replay_live(directory, sessions, source, replayer).difference == ""


def test_cut_off_anywhere_it_is_continued(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path
) -> None:
    _, directory = prove(parse(str(written(tmp_path)), None), with_tactics(ONE))
    expected = lines_of(directory)
    trace = directory / "trace.jsonl"
    whole = trace.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(whole)):
        trace.write_bytes(b"".join(whole[:kept]))
        assert resume(directory, sessions, replayer).proved == 1
        assert lines_of(directory) == expected, kept


@pytest.mark.parametrize("settings", [ONE, CELLS], ids=["centralized", "distributed"])
def test_without_another_script_the_last_rejected_one_is_the_result(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path, settings: Settings
) -> None:
    text = "axiom P : Prop\naxiom magic : P\ntheorem claim : P := by\n  sorry\n"
    settings = with_tactics(settings, "exact magic\n")
    result, directory = prove(parse(str(written(tmp_path, text)), None), settings)
    (goal,) = result.goals
    assert (goal.status, goal.proof) == ("rejected", "exact magic")
    assert goal.stop != "solved"
    source = build_source(settings)
    assert replay_offline(directory, source).difference == ""
    assert replay_live(directory, sessions, source, replayer).difference == ""
    trace = directory / "trace.jsonl"
    good = trace.read_text()
    for wrong in ('"excluded":0', '"edges":[0]', '"status":"rejected"'):
        assert wrong in good
        trace.write_text(good.replace(wrong, wrong.replace("0", "7").replace("rejected", "proved")))
        assert replay_offline(directory, source).difference
    trace.write_text("".join(x for x in good.splitlines(keepends=True) if '"refusal"' not in x))
    assert replay_offline(directory, source).difference


def test_an_excluded_edge_opens_what_rested_on_it() -> None:
    graph = Graph("root")
    changes = Changes()
    both = graph.add_edge(graph.root, "both", None, [Child("a", 0.5), Child("b", 0.5)], changes)
    other = graph.add_edge(graph.root, "other", None, [Child("a", 0.5)], changes)
    a, b = graph.by_key["a"], graph.by_key["b"]
    closing = graph.add_edge(a, "close a", None, [], changes)
    graph.add_edge(b, "close b", None, [], changes)
    assert both is not None
    assert other is not None
    assert closing is not None
    assert graph.root.solution is other
    graph.exclude(other)
    graph.check()
    assert graph.root.solution is both
    graph.exclude(closing)
    graph.check()
    assert (graph.root.status, a.status, b.status) == (Status.OPEN, Status.OPEN, Status.SOLVED)
    graph.exhaust(a, changes)
    graph.check()
    assert graph.root.live == []
    assert a.status is Status.DEAD
    again = graph.add_edge(graph.root, "again", None, [], changes)
    assert again is not None
    graph.check()
    assert graph.root.solution is again
