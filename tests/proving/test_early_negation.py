"""The negation is searched early with a small number of simulations, then the proof again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.proving.runs import Prove, SessionFactory, resume
from treewright.lean.verify.replayer import Replayer
from treewright.proving.cell_settings import CellSettings
from treewright.proving.phases import EARLY_NEGATE_SIMULATIONS, EARLY_PROVE_SIMULATIONS
from treewright.proving.records import GoalResult, Iteration
from treewright.proving.replay import replay_live, replay_offline
from treewright.proving.settings import Settings
from treewright.proving.tactics.factory import build_source
from treewright.proving.targets import parse
from treewright.proving.trace import read_trace, without_clock

pytestmark = pytest.mark.xdist_group("lean-session")

MANY = Settings(simulations=200, step_timeout=20.0)
SLOW = Settings(simulations=60, batch=1, step_timeout=20.0)
NEEDS_STEPS = "∀ p q : Prop, (∀ r : Prop, (p → q → r) → r) → p ∧ q"
HARD = "∀ a b c : Nat, a ^ 3 + b ^ 3 = c ^ 3 → a * b = 0"


def cells(settings: Settings) -> Settings:
    chosen = CellSettings(agents=3, inflight=2)
    return msgspec.structs.replace(settings, mode="distributed", cells=chosen, seed=3)


def kinds(directory: Path) -> list[str]:
    """Return `proof` or `negation` for each iteration, in the order of the trace."""
    words = {"prove": "proof", "negate": "negation"}
    lines = read_trace(directory / "trace.jsonl")
    return [words[line.phase] for line in lines if isinstance(line, Iteration)]


def verdict_of(directory: Path) -> GoalResult:
    verdict = read_trace(directory / "trace.jsonl")[-1]
    assert isinstance(verdict, GoalResult)
    return verdict


def assert_same_again(
    directory: Path, settings: Settings, sessions: SessionFactory, replayer: Replayer
) -> None:
    source = build_source(settings)
    assert replay_offline(directory, source).difference == ""
    assert replay_live(directory, sessions, source, replayer).difference == ""


@pytest.mark.parametrize("settings", [MANY, cells(MANY)], ids=["centralized", "distributed"])
def test_a_false_statement_is_refuted_after_a_small_share_of_the_simulations(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, settings: Settings
) -> None:
    result, directory = prove("∀ n : Nat, n < 5", settings)
    (goal,) = result.goals
    assert (goal.status, goal.stop) == ("false", "refuted")
    assert goal.proof == "exact fun h => absurd (h 5) (by decide)"
    turns = kinds(directory)
    assert turns.count("proof") == EARLY_PROVE_SIMULATIONS
    assert turns.count("negation") <= EARLY_NEGATE_SIMULATIONS
    assert goal.iterations == len(turns)
    assert verdict_of(directory).negation == "solved"
    assert_same_again(directory, settings, sessions, replayer)


@pytest.mark.parametrize("settings", [SLOW, cells(SLOW)], ids=["centralized", "distributed"])
def test_a_proof_that_takes_longer_is_found_after_the_share_of_the_negation(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, settings: Settings
) -> None:
    result, directory = prove(NEEDS_STEPS, settings)
    (goal,) = result.goals
    assert (goal.status, goal.stop) == ("proved", "solved")
    turns = kinds(directory)
    share = ["proof"] * EARLY_PROVE_SIMULATIONS + ["negation"] * EARLY_NEGATE_SIMULATIONS
    assert turns == share + ["proof"] * (len(turns) - len(share))
    assert goal.iterations == len(turns) > len(share)
    assert verdict_of(directory).negation == "simulations"
    assert_same_again(directory, settings, sessions, replayer)


@pytest.mark.parametrize("settings", [SLOW, cells(SLOW)], ids=["centralized", "distributed"])
def test_cut_off_anywhere_both_searches_are_continued(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, settings: Settings
) -> None:
    few = msgspec.structs.replace(settings, simulations=EARLY_PROVE_SIMULATIONS + 3)
    _, directory = prove(HARD, few)
    trace = directory / "trace.jsonl"
    expected = [without_clock(line) for line in read_trace(trace)]
    whole = trace.read_bytes().splitlines(keepends=True)
    turns = kinds(directory)
    rest = turns[EARLY_PROVE_SIMULATIONS + EARLY_NEGATE_SIMULATIONS :]
    assert rest[:3] == ["proof"] * 3
    assert set(rest[3:]) == {"negation"}
    for kept in (
        2,
        EARLY_PROVE_SIMULATIONS + 1,
        EARLY_PROVE_SIMULATIONS + 4,
        len(whole) - 6,
        len(whole) - 2,
    ):
        trace.write_bytes(b"".join(whole[:kept]))
        assert resume(directory, sessions, replayer).goals[0].status == "unproved"
        assert [without_clock(line) for line in read_trace(trace)] == expected, kept


def test_searches_in_another_order_are_found_offline(prove: Prove) -> None:
    _, directory = prove(
        HARD, msgspec.structs.replace(SLOW, simulations=EARLY_PROVE_SIMULATIONS + 3)
    )
    assert replay_offline(directory, build_source(SLOW)).difference == ""
    trace = directory / "trace.jsonl"
    lines: list[dict[str, Any]] = [json.loads(line) for line in trace.read_text().splitlines()]
    proof = [x for x in lines if x.get("phase") == "prove"]
    negation = [x for x in lines if x.get("phase") == "negate"]
    verdict = [x for x in lines if x["type"] == "verdict"]
    for order in ((*proof, *negation, *verdict), (proof[0], *negation, *proof[1:], *verdict)):
        trace.write_text("".join(f"{json.dumps(line)}\n" for line in order))
        assert "order" in replay_offline(directory, build_source(SLOW)).difference


def test_a_changed_stop_reason_of_an_early_negation_is_noticed(prove: Prove) -> None:
    _, directory = prove("∀ n : Nat, n < 5", MANY)
    trace = directory / "trace.jsonl"
    text = trace.read_text()
    for stop in ("simulations", "exhausted", "solved"):
        trace.write_text(text.replace('"stop":"refuted"', f'"stop":"{stop}"'))
        assert replay_offline(directory, build_source(MANY)).difference


def test_the_negation_of_a_declaration_is_searched_early_once(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path
) -> None:
    path = tmp_path / "Both.lean"
    path.write_text(
        f"theorem both : ({NEEDS_STEPS}) ∧ ({NEEDS_STEPS}) := by\n"
        "  constructor\n  · sorry\n  · sorry\n"
    )
    result, directory = prove(parse(str(path), None), SLOW)
    assert [goal.status for goal in result.goals] == ["proved", "proved"]
    lines = read_trace(directory / "trace.jsonl")
    turns = [x for x in lines if isinstance(x, Iteration) and x.phase == "negate"]
    assert {turn.goal for turn in turns} == {0}
    assert len(turns) == EARLY_NEGATE_SIMULATIONS
    assert_same_again(directory, SLOW, sessions, replayer)
