"""Whatever callers give: it is refused in one line, or it is there after a crash."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy
import pytest

import treewright
from treewright.kernel.errors import UsageError


def nested(depth: int) -> list:
    data: list = []
    for _ in range(depth):
        data = [data]
    return data


@pytest.mark.parametrize(
    "given",
    [
        {"prior": math.nan},
        {"prior": math.inf},
        {"prior": -1.0},
        {"prior": None},
        {"expandable": None},
        {"expandable": 1},
        {"worker": 5},
        {"data": nested(700)},
        {"data": nested(5000)},
        {"data": "\udcff"},
    ],
)
def test_data_that_could_not_be_read_back_is_refused(tmp_path: Path, given) -> None:
    """It was written, and the whole search could not be opened again."""
    for place in (tmp_path, None):
        with treewright.open_search(place) as search:
            task = search.ask()
            with pytest.raises(UsageError):
                search.tell(task, 1.0, **given)
            search.tell(task, 1.0, data=nested(300))
    with treewright.open_search(tmp_path) as search:
        assert len(search.nodes) == 1


@pytest.mark.parametrize(
    ("reason", "words"),
    [(None, ""), (ValueError("no"), "ValueError: no"), ("\udcff", "\\udcff"), (5, "5")],
)
def test_any_reason_can_be_read_back(tmp_path: Path, reason, words: str) -> None:
    with treewright.open_search(tmp_path) as search:
        search.release(search.ask(), reason)
        search.fail(search.ask(), reason)
    with treewright.open_search(tmp_path) as search:
        assert search.failures == {1: words}


@pytest.mark.parametrize("budget", [True, 2.5, "5", -1])
def test_a_budget_is_a_whole_number(tmp_path: Path, budget) -> None:
    with pytest.raises(UsageError, match="budget"):
        treewright.open_search(tmp_path, budget=budget)
    with treewright.open_search(tmp_path) as search, pytest.raises(UsageError, match="budget"):
        search.set_budget(budget)


@pytest.mark.parametrize(
    "setting", [{"seed": "x"}, {"lookahead": "3"}, {"branching": "2"}, {"actions": ["\udcff"]}]
)
def test_settings_of_the_wrong_kind_are_one_line(setting) -> None:
    with pytest.raises(UsageError):
        treewright.open_search(**setting)


def test_an_evaluation_may_change_the_data_it_is_given(tmp_path: Path) -> None:
    """A change to the parent's data would make the tree depend on the order of evaluation."""

    def evaluate(task: treewright.Task) -> treewright.Result:
        steps = task.parent.data
        steps.append(task.number)
        return treewright.Result(len(steps), data=steps)

    with treewright.open_search(policy="random", seed=1, root=[], budget=8) as whole:
        whole.run(evaluate)
    for budget in (3, 8):
        with treewright.open_search(
            tmp_path, policy="random", seed=1, root=[], budget=budget
        ) as search:
            search.run(evaluate)
    assert [node.data for node in search.nodes] == [node.data for node in whole.nodes]
    assert whole.root.data == []


def test_a_task_released_twice_is_handed_out_once() -> None:
    search = treewright.open_search(lookahead=3)
    task = search.ask()
    assert task is not None
    search.release(task)
    search.release(task)
    again, other = search.ask(), search.ask()
    assert again is not None
    assert other is not None
    assert (again.number, other.number) == (1, 2)
    search.release(task)  # late: another thread has the task
    third = search.ask()
    assert third is not None
    assert third.number == 3


def test_telling_other_scores_of_the_same_mean_is_telling_something_else() -> None:
    search = treewright.open_search()
    task = search.ask()
    assert task is not None
    search.tell(task, {"a": 1.0, "b": 3.0})
    with pytest.raises(UsageError, match="outcome already"):
        search.tell(task, {"a": 2.0, "b": 2.0})


@pytest.mark.parametrize("task", [None, "1", True, 1.0])
def test_a_wrong_task_is_an_error_of_one_line(task) -> None:
    search = treewright.open_search(budget=1)
    search.ask()
    for word in (search.tell, search.fail, search.release):
        with pytest.raises(UsageError, match="a task is what ask"):
            word(task, 1.0)


def test_one_exception_can_be_caught() -> None:
    with treewright.open_search(budget=3) as search:
        search.run(lambda task: 1 / 0, catch=ZeroDivisionError)
        assert len(search.failures) == 3


@pytest.mark.parametrize("workers", [0, "2", 2.0, True])
def test_workers_are_a_whole_number(workers) -> None:
    with pytest.raises(UsageError, match="workers"):
        treewright.open_search(budget=3).run(lambda task: 1.0, workers=workers)


@pytest.mark.parametrize(
    "score", [10**400, 10**5000, {"a": 1e308, "b": 1e308}, {"a": 10**400}], ids=range(4)
)
def test_scores_that_sums_cannot_hold_are_one_line(score) -> None:
    search = treewright.open_search(gate="parent", root_score={"a": 0.0, "b": 0.0})
    task = search.ask()
    assert task is not None
    with pytest.raises(UsageError, match="score"):
        search.tell(task, score)
    search.tell(task, {"a": 1e140, "b": -1e140})


@pytest.mark.parametrize("number", [Fraction(1, 2), numpy.float32(0.5), numpy.int64(1)])
def test_real_numbers_of_other_kinds_are_scores(number, tmp_path: Path) -> None:
    with treewright.open_search(tmp_path, budget=1) as search:
        search.run(lambda task: number)
    assert search.nodes[0].score == float(number)


@pytest.mark.parametrize("selection", ["uct", "puct"])
def test_priors_may_all_be_zero(selection: str) -> None:
    with treewright.open_search(
        policy="mcts", options={"selection": selection}, budget=30
    ) as search:
        search.run(lambda task: treewright.Result(1.0, prior=0.0))
        assert search.evaluations == 30


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("mcts", {"exploration": math.inf}),
        ("mcts", {"widen_power": 1e6}),
        ("ab-mcts", {"prior_spread": 1e200}),
        ("ab-mcts", {"prior_weight": 1e-300}),
    ],
)
def test_settings_beyond_reckoning_are_refused(policy: str, options) -> None:
    with pytest.raises(UsageError, match=f"policy {policy}"):
        treewright.open_search(policy=policy, options=options)


@pytest.mark.parametrize("extreme", [1e-6, 1e6])
def test_the_extremes_that_are_allowed_can_be_used(extreme: float) -> None:
    options = dict.fromkeys(("prior_weight", "prior_freedom", "prior_spread"), extreme)
    with treewright.open_search(policy="ab-mcts", options=options, budget=60) as search:
        search.run(lambda task: float(task.seed % 10))
    options = {"exploration": extreme, "widen_scale": extreme, "widen_power": min(10.0, extreme)}
    with treewright.open_search(policy="mcts", options=options, budget=60) as search:
        search.run(lambda task: float(task.seed % 10))
