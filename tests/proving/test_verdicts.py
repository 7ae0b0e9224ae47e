"""Results rest on the trace: the negation is searched in it, and edits are found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from tests.proving.runs import LEAN, Prove, SessionFactory, resume
from treewright.cli.replay import replay
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import digest
from treewright.proving import run as runs
from treewright.proving.cell_settings import CellSettings
from treewright.proving.records import GoalResult, Iteration
from treewright.proving.replay import replay_live, replay_offline
from treewright.proving.settings import Settings, StatementTarget
from treewright.proving.tactics.factory import build_source
from treewright.proving.targets import parse
from treewright.proving.trace import read_trace, without_clock

pytestmark = pytest.mark.xdist_group("lean-session")

FALSE = "∀ n : Nat, n = n + 1"
HARD = "∀ a b c : Nat, a ^ 3 + b ^ 3 = c ^ 3 → a * b = 0"
TRUE = "∀ p q : Prop, p ∧ q → q ∧ p"
FEW = Settings(simulations=6, step_timeout=20.0)


def cells(**settings: Any) -> Settings:
    chosen = CellSettings(agents=3, inflight=2, **settings)
    return msgspec.structs.replace(FEW, mode="distributed", cells=chosen, seed=3)


def offline(directory: Path) -> str:
    return replay_offline(directory, build_source(FEW)).difference


@pytest.mark.parametrize("settings", [FEW, cells()], ids=["centralized", "distributed"])
def test_the_search_for_the_negation_is_in_the_trace_and_comes_out_the_same(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, settings: Settings
) -> None:
    result, directory = prove(FALSE, settings)
    assert result.goals[0].status == "false", result.goals
    lines = read_trace(directory / "trace.jsonl")
    turns = [x for x in lines if isinstance(x, Iteration) and x.phase == "negate"]
    assert turns
    assert all((line.agent is None) == (settings.cells is None) for line in turns)
    assert [line.iteration for line in turns] == list(range(1, len(turns) + 1))
    source = build_source(settings)
    again = replay_offline(directory, source)
    assert again.difference == ""
    live = replay_live(directory, sessions, source, replayer)
    assert (live.difference, live.iterations) == ("", again.iterations)
    assert again.iterations == result.goals[0].iterations


def test_cells_that_are_all_blocked_find_no_negation_either(prove: Prove) -> None:
    result, directory = prove(FALSE, cells(block_fraction=1.0, block_permanent=True))
    assert (result.goals[0].status, result.goals[0].stop) == ("unproved", "abort")
    verdict = read_trace(directory / "trace.jsonl")[-1]
    assert isinstance(verdict, GoalResult)
    assert verdict.negation == "abort"
    assert offline(directory) == ""


def test_a_negation_cut_off_in_the_middle_is_continued(
    prove: Prove, sessions: SessionFactory, replayer: Replayer
) -> None:
    _, whole = prove(HARD, FEW)
    expected = [without_clock(line) for line in read_trace(whole / "trace.jsonl")]
    lines = (whole / "trace.jsonl").read_bytes().splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if b'"phase":"negate"' in line]
    assert len(places) > 1
    (whole / "trace.jsonl").write_bytes(b"".join(lines[: places[1]]))
    resume(whole, sessions, replayer)
    assert [without_clock(line) for line in read_trace(whole / "trace.jsonl")] == expected


Edit = Callable[[dict[str, Any]], None]


def edited(directory: Path, edit: Edit, kind: str = "verdict") -> Path:
    """A copy of a run with every line of a kind changed by hand, and result.json to match."""
    copy = directory.with_name(f"{directory.name}-edited")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    lines = [json.loads(line) for line in (copy / "trace.jsonl").read_text().splitlines()]
    for line in lines:
        if line["type"] == kind:
            edit(line)
    (copy / "trace.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (copy / "result.json").unlink()
    return copy


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "false", "proof": "intro h\nomega", "detail": "its negation is proved"},
        {"status": "proved", "proof": "simp", "detail": "", "stop": "solved"},
        {"status": "rejected", "proof": "simp"},
        {"stop": "exhausted"},
        {"stop": "time"},
        {"iterations": 3},
        {"negation": "exhausted"},
        {"negation": ""},
        {"proof": "simp"},
        {"axioms": ["propext"]},
        {"status": "ill_typed", "stop": "ill_typed"},
        {"check": {"reason": "sorry", "original": "0", "candidate": "0"}},
    ],
    ids=str,
)
def test_a_verdict_edited_by_hand_is_found_offline(unproved: Path, changes: dict[str, Any]) -> None:
    assert offline(unproved) == ""
    assert offline(edited(unproved, lambda line: line.update(changes)))


@pytest.fixture(scope="session")
def unproved(
    tmp_path_factory: pytest.TempPathFactory, sessions: SessionFactory, replayer: Replayer
) -> Path:
    """One run without a proof, for all edits of it."""
    base = tmp_path_factory.mktemp("unproved")
    directory = runs.new_directory(base, "r")
    runs.create(directory, StatementTarget(HARD), FEW, LEAN, None)
    assert resume(directory, sessions, replayer).goals[0].status == "unproved"
    return directory


def test_turns_of_the_negation_that_were_left_out_are_missed(unproved: Path) -> None:
    copy = edited(unproved, lambda line: None)
    trace = copy / "trace.jsonl"
    kept = [x for x in trace.read_text().splitlines() if '"phase": "negate"' not in x]
    trace.write_text("\n".join(kept) + "\n")
    assert "negation" in offline(copy)


def test_a_proof_edited_by_hand_is_found(
    prove: Prove, sessions: SessionFactory, replayer: Replayer
) -> None:
    _, directory = prove(TRUE, FEW)
    assert offline(directory) == ""
    assert offline(edited(directory, lambda line: line.update(proof="sorry")))
    assert offline(edited(directory, lambda line: line.update(status="partial", detail="x")))
    refused = edited(directory, lambda line: line.update(status="rejected", detail="x", axioms=[]))
    assert "but the replay check said 'proved'" in offline(refused)
    # If the answer of the replay check is edited too, only Lean finds the edit.
    both = edited(directory, refuse)
    assert offline(both) == ""
    live = replay_live(both, sessions, build_source(FEW), replayer)
    assert "accepted" in live.difference
    axioms = edited(directory, lambda line: line.update(axioms=["Classical.choice", "propext"]))
    assert "axioms" in replay_live(axioms, sessions, build_source(FEW), replayer).difference


def refuse(line: dict[str, Any]) -> None:
    line["check"] |= {"reason": "sorry", "detail": "x"}
    line.update(status="rejected", detail="sorry: x", axioms=[])


def test_the_answer_of_the_replay_check_is_in_the_trace(prove: Prove) -> None:
    result, directory = prove(TRUE, FEW)
    verdict = read_trace(directory / "trace.jsonl")[-1]
    assert isinstance(verdict, GoalResult)
    assert verdict.check is not None
    assert result.certificate is not None
    certified = json.loads(Path(result.certificate).read_text())
    assert verdict.check.reason == "proved"
    assert verdict.check.original == certified["original"]
    assert verdict.check.candidate == certified["candidate"]
    (shown,) = replay_offline(directory, build_source(FEW)).checks
    assert (shown.goal, shown.status, shown.reason) == (verdict.goal, "proved", "proved")
    assert shown.candidate == certified["candidate"]
    printed = CliRunner().invoke(replay, ["--offline", str(directory)]).output
    assert printed.startswith("the same: 1 goal, ")
    said = f"the replay check said 'proved' of text {certified['candidate'][:12]}"
    assert f"goal 0, proved: {said}" in printed.splitlines()
    for wrong, words in (
        ({"check": None}, "was not asked"),
        ({"check": certified | {"reason": "axiom"}}, "said 'axiom'"),
        ({"check": certified | {"reason": "proved", "candidate": "0" * 64}}, "another text"),
        ({"check": certified | {"reason": "proved", "original": "0" * 64}}, "another text"),
    ):
        assert words in offline(edited(directory, lambda line, wrong=wrong: line.update(wrong)))


def test_a_refutation_and_its_answer_belong_together(prove: Prove) -> None:
    _, directory = prove(FALSE, FEW)
    verdict = read_trace(directory / "trace.jsonl")[-1]
    assert isinstance(verdict, GoalResult)
    assert verdict.check is not None
    assert verdict.check.reason == "proved"

    def refused(line: dict[str, Any]) -> None:
        """Edit the result into that of a run with a refused proof of the negation."""
        line["check"] |= {"reason": "axiom", "detail": "x"}
        line.update(status="unproved", proof="", axioms=[], detail="x")

    assert offline(edited(directory, refused)) == ""
    assert "said 'axiom'" in offline(
        edited(directory, lambda line: line["check"].update(reason="axiom"))
    )
    assert "was not asked" in offline(
        edited(directory, lambda line: (refused(line), line.update(check=None)))
    )


def test_a_proof_without_an_answer_of_the_replay_check_is_found(prove: Prove) -> None:
    _, directory = prove(TRUE, FEW)
    assert "was not asked" in offline(edited(directory, lambda line: line.pop("check")))


def test_result_json_must_agree_with_the_trace(unproved: Path) -> None:
    copy = unproved.with_name("told")
    shutil.copytree(unproved, copy)
    assert offline(copy) == ""
    told = json.loads((copy / "result.json").read_text())
    for change in (
        lambda r: r["goals"][0].update(status="false"),
        lambda r: r["goals"][0].update(proof="simp"),
        lambda r: r.update(proved=1),
        lambda r: r["goals"].clear(),
    ):
        wrong = json.loads(json.dumps(told))
        change(wrong)
        (copy / "result.json").write_text(json.dumps(wrong))
        assert "result.json" in offline(copy)


def test_the_copy_of_a_file_has_the_proofs(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path
) -> None:
    path = tmp_path / "Own.lean"
    path.write_text("theorem own (a : Nat) : a + 0 = a := by\n  sorry\n")
    result, directory = prove(parse(str(path), None), FEW)
    assert result.file is not None
    source = build_source(FEW)
    live = replay_live(directory, sessions, source, replayer)
    assert live.difference == ""
    assert [check.candidate for check in live.checks] == [digest(Path(result.file).read_text())]
    foreign = edited(directory, lambda line: line["check"].update(original="0" * 64))
    assert "another text" in offline(foreign)
    Path(result.file).write_text("theorem own : False := sorry\n")
    assert "Own.lean" in replay_live(directory, sessions, source, replayer).difference
