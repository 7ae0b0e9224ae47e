"""The beam of a depth: its candidates, its order, and candidates that count once."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toy import ToyRepository, diff_of_line, idea
from tests.tree.making import evaluation
from tests.tree.runs import RUN_ID
from treewright.tree.deciding import promotion, rounds
from treewright.tree.deciding.promotion import KnownCode
from treewright.tree.ideas.search_history import Outcomes
from treewright.tree.records import store
from treewright.tree.records.model import Confirmation, Evaluation, Manifest
from treewright.tree.report import write_report
from treewright.tree.repository.formatting import code_digests, python_key
from treewright.tree.run.creation import PolicyChoice, Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.validation import validate

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


POLICIES = pytest.mark.parametrize("policy", [None, "best-first"])


def run(toy: ToyRepository, policy: str | None, *, width: int = 2, **shape: int) -> Manifest:
    given = {"sweep_config_limit": 8, "max_depth": 1, "ideas_per_node": 2} | shape
    if policy is not None:
        given["max_total_idea_evals"] = 2
    beam = width if policy is None else None
    request = RunRequest(
        toy.path,
        RUN_ID,
        shape=Shape(**given, beam_width=beam),
        choosing=PolicyChoice(policy=policy),
    )
    with open_run(request) as coordinator:
        coordinator.finish()
    assert validate(toy.run_dir(RUN_ID), toy.path) == []
    return store.load(toy.run_dir(RUN_ID))


def fates(manifest: Manifest) -> list[str]:
    return [e.decision.fate for e in manifest.evaluations.values() if e.decision]


def only_ideas(toy: ToyRepository, *changes: str) -> None:
    shutil.rmtree(toy.path / "ideas")
    for number, change in enumerate(changes):
        toy.write(f"ideas/{number}.md", idea(f"Idea {number}", change))
    toy.commit("ideas")


@POLICIES
def test_equal_results_over_many_configs_count_once(toy: ToyRepository, policy: str | None) -> None:
    spellings = ("A 2.0", "A 2.00")
    only_ideas(toy, *(diff_of_line("params.txt", "A 1.0", after, 1) for after in spellings))
    manifest = run(toy, policy, confirm_configs=4)
    assert fates(manifest) == ["promoted", "duplicate_results"]
    assert len(manifest.nodes) == 2
    report = write_report(toy.run_dir(RUN_ID), manifest).read_text()
    assert "same results as another" in report


def one_number(toy: ToyRepository) -> None:
    """Create a repository with a Python program that is measured by one number."""
    toy.write("program.py", "left = 1.0\n# keep\nright = 1.0\n# keep\n")
    toy.write(
        "sweep.sh",
        'python3 -c \'exec(open("program.py").read())\n'
        'print("config_id,status,loss,cost")\nprint(f"0,ok,{10 - left - right},1")\''
        ' > "$TREEWRIGHT_RESULTS_CSV"\n',
    )
    toy.write("baseline.csv", "config_id,status,loss,cost\n0,ok,8.0,1\n")
    config = (toy.path / "treewright.toml").read_text()
    toy.write(
        "treewright.toml", config.replace("primary = true", "primary = true\ndeterministic = true")
    )


@POLICIES
def test_equal_scores_of_different_ideas_are_a_tie(toy: ToyRepository, policy: str | None) -> None:
    one_number(toy)
    only_ideas(
        toy,
        diff_of_line("program.py", "left = 1.0", "left = 1.25", 1),
        diff_of_line("program.py", "right = 1.0", "right = 1.25", 3),
    )
    assert fates(run(toy, policy, sweep_config_limit=1)) == ["promoted", "promoted"]


@POLICIES
def test_equal_scores_of_code_that_is_the_same_after_formatting_count_once(
    toy: ToyRepository, policy: str | None
) -> None:
    one_number(toy)
    only_ideas(
        toy,
        diff_of_line("program.py", "left = 1.0", "left = 1.25", 1),
        diff_of_line("program.py", "left = 1.0", "left = (1.250)  # larger", 1),
    )
    manifest = run(toy, policy, sweep_config_limit=1)
    assert fates(manifest) == ["promoted", "duplicate_results"]


def test_a_tie_beyond_the_beam_is_not_listed_as_an_idea_to_avoid(
    toy: ToyRepository,
) -> None:
    one_number(toy)
    only_ideas(
        toy,
        diff_of_line("program.py", "left = 1.0", "left = 1.25", 1),
        diff_of_line("program.py", "right = 1.0", "right = 1.25", 3),
    )
    manifest = run(toy, None, width=1, sweep_config_limit=1)
    assert fates(manifest) == ["promoted", "beyond_beam"]
    with open_run(RunRequest(toy.path, RUN_ID)) as coordinator:
        run_dir, config = coordinator.store.run_dir, coordinator.config
    outcomes = Outcomes(toy.path, run_dir, config, manifest, manifest.nodes["n0001"])
    assert outcomes.beyond_beam() == {manifest.nodes["n0000"].ideas[1].key}


def test_code_that_differs_only_in_form_is_the_same(toy: ToyRepository) -> None:
    root = toy.commit("root")
    versions = []
    for text in ("x = {'a': 1}\n", 'x = {\n    "a": 1,\n}  # one\n', "x = {'a': 2}\n", "x = {\n"):
        toy.write("code.py", text)
        versions.append(toy.commit("code"))
    toy.git("checkout", "-q", root)
    toy.write("params.txt", "A 1.0 \n")
    versions.append(toy.commit("a blank at the end of a line that is no Python"))
    first, formatted, other, broken, text = code_digests(toy.path, root, versions)
    assert first == formatted
    assert len({first, other, broken, text}) == 4
    assert code_digests(toy.path, root, [root])[0] not in (first, other, broken, text)


def test_a_file_that_python_cannot_parse_is_compared_byte_for_byte() -> None:
    deep = b"x = " + b"(" * 5000 + b")" * 5000
    assert python_key(deep) != python_key(deep + b"\n")
    assert python_key(b"x = 1") == python_key(b"x  =  1\n\n")
