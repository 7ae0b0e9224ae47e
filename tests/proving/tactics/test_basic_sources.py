"""Sources that pass on what others gave: files, caches, searches, several sources, noise."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from treewright.kernel.errors import UsageError
from treewright.proving.records import Candidate, GoalView
from treewright.proving.tactics.basic_sources import CachedTactics, FileTactics, LeanAdvice
from treewright.proving.tactics.premise_lemmas import LemmaTactics
from treewright.proving.tactics.source import MergedSource, NoisySource, Suggestions

GOAL = GoalView("a + b = b + a")


def tactics(suggestions: Suggestions) -> list[str]:
    return [candidate.tactic for candidate in suggestions.candidates]


def test_a_file_of_tactics() -> None:
    source = FileTactics("# mine\nsimp\n\n0.75\tomega\n  exact h  \n", "tactics.txt")
    first = source.suggest([GOAL], 0)
    assert tactics(first) == ["simp", "omega", "exact h"]
    assert first.candidates[1].prior == 0.75
    assert first.complete
    assert not source.suggest([GOAL], 1).candidates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("simp\nnative_decide\n", "tactics.txt:2: `native_decide` is not allowed"),
        ("much\tsimp\n", "tactics.txt:1: the prior `much` is not a number"),
        ("1.5\tsimp\n", "tactics.txt:1: the prior 1.5 is not above 0"),
        ("0.5\t\n", "tactics.txt:1: a prior without a tactic"),
        ("simp\nsimp\n", "tactics.txt:2: the tactic is in the file twice"),
        ("# nothing\n", "no tactics in it"),
    ],
)
def test_an_error_in_a_tactics_file_names_its_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        FileTactics(text, "tactics.txt")


@dataclass
class Entry:
    tactic: str
    success_rate: float


class Cache:
    def tactics_for(self, goal: str) -> list[Entry]:
        assert goal == "⊢ a + b = b + a"
        return [Entry("simp", 0.71), Entry("rfl", 0.7), Entry("omega", 0.9), Entry("sorry", 1.0)]


def test_the_cache_is_used_above_its_threshold_best_first() -> None:
    assert tactics(CachedTactics(Cache()).suggest([GOAL], 0)) == ["omega", "simp"]


@dataclass
class Lemma:
    name: str
    type: str | None


def test_lemmas_are_applied_and_equations_rewritten_with() -> None:
    def search(text: str, k: int, /) -> list[Lemma]:
        assert text == GOAL.target
        assert k == 8
        return [
            Lemma("Nat.add_comm", "∀ (n m : Nat), n + m = m + n"),
            Lemma("Nat.le_of_lt", "∀ {n m : Nat}, n < m → n ≤ m"),
        ]

    found = tactics(LemmaTactics(search).suggest([GOAL], 0))
    assert {"apply Nat.add_comm", "rw [Nat.add_comm]", "rw [← Nat.add_comm]"} <= set(found)
    assert "simp [Nat.add_comm]" in found
    assert "apply Nat.le_of_lt" in found
    assert "rw [Nat.le_of_lt]" not in found


def test_only_identifiers_of_an_index_are_used() -> None:
    @dataclass
    class Found:
        name: str
        type: str | None = "a = b"

    hostile = ["x]; exact sorryAx _ true --", "sorryAx", "a\nexact b", "_private.0.x", "foo bar"]

    def search(text: str, k: int) -> list[Found]:
        return [Found(name) for name in [*hostile, "Nat.add_comm"]]

    found = tactics(LemmaTactics(search).suggest([GOAL], 0))
    assert {tactic.split()[-1].strip("[]") for tactic in found} == {"Nat.add_comm"}


def test_advice_waits_for_its_round() -> None:
    early = LeanAdvice().suggest([GOAL], 0)
    assert not early.candidates
    assert not early.complete
    late = LeanAdvice().suggest([GOAL], 1)
    assert tactics(late) == ["exact?"]
    assert late.complete


class Fixed:
    def __init__(self, name: str, *given: Candidate, complete: bool = True) -> None:
        self.name = name
        self._suggestions = Suggestions(given, complete)

    def suggest(self, goals: object, round_number: int) -> Suggestions:
        return self._suggestions


def test_merged_sources_share_the_prior_by_weight_and_propose_each_tactic_once() -> None:
    left = Fixed("left", Candidate("simp", 3.0), Candidate("omega", 1.0))
    right = Fixed("right", Candidate("omega"), complete=False)
    merged = MergedSource(left, (right, 3.0)).suggest([GOAL], 0)
    assert [(c.tactic, c.source) for c in merged.candidates] == [
        ("omega", "left"),
        ("simp", "left"),
    ]
    assert [c.prior for c in merged.candidates] == pytest.approx([3.25 / 4, 0.75 / 4])
    assert not merged.complete
    assert MergedSource(left, left).suggest([GOAL], 0).complete


def test_noise_depends_on_seed_and_goal_alone_and_keeps_the_sum() -> None:
    given = [Candidate(f"t{n}", 0.1) for n in range(10)]
    plain = Fixed("plain", *given)
    one = NoisySource(plain, seed=1).suggest([GOAL], 0)
    again = NoisySource(plain, seed=1).suggest([GOAL], 0)
    assert one == again
    assert sum(c.prior or 0.0 for c in one.candidates) == pytest.approx(1.0)
    assert set(tactics(one)) == {c.tactic for c in given}
    assert tactics(one) != tactics(NoisySource(plain, seed=2).suggest([GOAL], 0))
    assert tactics(one) != tactics(NoisySource(plain, seed=1).suggest([GoalView("b")], 0))
    assert min(c.prior or 0.0 for c in one.candidates) >= 0.09
    assert NoisySource(plain, seed=1, fraction=0.0).suggest([GOAL], 0).candidates == tuple(given)
