"""The beam holds the best eligible candidates, never more than its width, in any order of
arrival."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.tree.making import evaluation
from treewright.tree.deciding import promotion, rounds
from treewright.tree.deciding.promotion import KnownCode
from treewright.tree.records.model import Confirmation, Evaluation

scores = st.sampled_from([-0.5, 0.0, 0.1, 0.1, 0.2, 0.3])


@st.composite
def depths(draw) -> list[Evaluation]:
    return [
        evaluation(
            number,
            draw(scores),
            draw(scores),
            passes=draw(st.booleans()),
            tree=draw(st.sampled_from(["", "a", "b", "c"])) or f"tree-{number}",
            error="tests_failed" if draw(st.integers(0, 4)) == 0 else "",
            results=draw(st.sampled_from(["", "same", "as well"])) or f"results-{number}",
        )
        for number in range(1, draw(st.integers(0, 12)) + 1)
    ]


def may(one: Evaluation) -> bool:
    return promotion.decide_gate(one.parent_relative, one.error).passed


def digest(one: Evaluation) -> str:
    assert one.results_csv is not None
    return one.results_csv.sha256


def root_score(one: Evaluation) -> float:
    assert one.root_relative is not None
    return one.root_relative.score


def confirmation(held: bool) -> Confirmation:
    return Confirmation(8, 12, held, [], None, None, None, None, None)


@given(depths(), st.integers(1, 5), st.sets(st.sampled_from(["a", "b"])))
def test_the_beam(evaluations, width, known) -> None:
    nodes = KnownCode(dict.fromkeys(known, 0), {("same", ""): 0} if "a" in known else {})
    found = rounds.select_beam(evaluations, width, nodes, None)
    by_id = {one.eval_id: one for one in evaluations}
    promoted = [by_id[eval_id] for eval_id in found.promoted]
    trees = [one.candidate_tree for one in promoted]
    assert len(promoted) <= width
    assert all(may(one) for one in promoted), "only what passed the gate"
    assert len(set(trees)) == len(trees), "a tree once"
    assert not set(trees) & known
    results = [digest(one) for one in promoted]
    assert len(set(results)) == len(results), "results once"
    taken = {sha256 for sha256, _ in nodes.results}
    assert not set(results) & taken
    assert set(found.decisions) == set(by_id), "everybody's fate is known"
    rest = [one for one in evaluations if one not in promoted and may(one)]
    left_out = [
        one
        for one in rest
        if one.candidate_tree not in {*trees, *known} and digest(one) not in {*results, *taken}
    ]
    if left_out:
        assert len(promoted) == width, "room is not wasted"
        worst = min(map(root_score, promoted))
        assert all(root_score(one) <= worst for one in left_out), "nobody better is left out"
    for eval_id, decision in found.decisions.items():
        assert (decision.fate == "promoted") == (eval_id in found.promoted)
        assert decision.gate.passed == may(by_id[eval_id])
        assert (decision.rank is not None) == may(by_id[eval_id])
        if not decision.gate.passed:
            failed = by_id[eval_id].error is not None
            assert decision.fate == ("evaluation_failed" if failed else "gate_failed")


@given(depths(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(evaluations, width, generator) -> None:
    expected = rounds.select_beam(evaluations, width, KnownCode(), None)
    shuffled = list(evaluations)
    generator.shuffle(shuffled)
    assert rounds.select_beam(shuffled, width, KnownCode(), None) == expected


def test_ties_are_broken_by_the_parents_gain_then_by_age() -> None:
    same = [evaluation(3, 0.1, 0.1), evaluation(2, 0.1, 0.1), evaluation(1, 0.1, 0.05)]
    assert [one.eval_id for one in rounds.rank(same)] == ["e000002", "e000003", "e000001"]


def test_the_older_of_two_candidates_with_equal_trees_is_promoted() -> None:
    found = rounds.select_beam(
        [evaluation(2, tree="x"), evaluation(1, tree="x")], 2, KnownCode(), None
    )
    assert found.promoted == ["e000001"]
    assert found.decisions["e000002"].fate == "duplicate_code"


def test_the_older_of_two_candidates_with_equal_results_is_promoted() -> None:
    same = [evaluation(2, results="x"), evaluation(1, results="x")]
    found = rounds.select_beam(same, 2, KnownCode(), None)
    assert found.promoted == ["e000001"]
    assert found.decisions["e000002"].fate == "duplicate_results"


def test_candidates_with_the_same_single_number_fill_the_beam() -> None:
    same = [evaluation(2, results="x", rows=1), evaluation(1, results="x", rows=1)]
    assert rounds.select_beam(same, 2, KnownCode(), None).promoted == ["e000001", "e000002"]
    narrow = rounds.select_beam(same, 1, KnownCode(), None)
    assert narrow.decisions["e000002"].fate == "beyond_beam"


def test_the_same_single_number_of_the_same_code_counts_once() -> None:
    same = [evaluation(n, results="x", rows=1, code="formatted") for n in (1, 2)]
    found = rounds.select_beam(same, 2, KnownCode(), None)
    assert found.decisions["e000002"].fate == "duplicate_results"
    other = [evaluation(n, results=f"{n}", rows=1, code="formatted") for n in (1, 2)]
    assert len(rounds.select_beam(other, 2, KnownCode(), None).promoted) == 2, (
        "formatting made a difference"
    )


def test_a_candidate_without_root_score_comes_last() -> None:
    unscored = evaluation(1)
    unscored.root_relative = None
    assert [one.eval_id for one in rounds.rank([unscored, evaluation(2, -0.9)])] == [
        "e000002",
        "e000001",
    ]


@given(depths(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_confirmations_are_requested_together_and_only_where_needed(
    evaluations, width, generator
) -> None:
    outcome = {one.eval_id: generator.random() < 0.5 for one in evaluations}
    confirmations: dict[str, Confirmation] = {}
    while True:
        found = rounds.select_beam(evaluations, width, KnownCode(), confirmations)
        if not found.to_confirm:
            break
        assert confirmations.keys().isdisjoint(found.to_confirm)
        assert found.promoted == []
        confirmations |= {name: confirmation(outcome[name]) for name in found.to_confirm}
    one_by_one: dict[str, Confirmation] = {}
    while first := rounds.select_beam(evaluations, width, KnownCode(), one_by_one).to_confirm[:1]:
        one_by_one[first[0]] = confirmation(outcome[first[0]])
    assert confirmations == one_by_one, "those that one after the other would have been asked for"
    assert all(outcome[eval_id] for eval_id in found.promoted)
    assert all(may(one) for one in evaluations if one.eval_id in confirmations)
    held = [eval_id for eval_id in confirmations if outcome[eval_id]]
    assert sorted(held) == sorted(found.promoted), "no sweep is spent on what cannot be promoted"
    for eval_id in confirmations:
        fate = found.decisions[eval_id].fate
        assert fate == ("promoted" if outcome[eval_id] else "not_confirmed")
