"""Any timing gives the same tree: completion orders permuted, workers varied, live order
recorded."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treewright
from tests.search.landscape import shape, walk
from treewright.kernel.errors import UsageError
from treewright.search import policies, search_journal
from treewright.search.durable_search import Search
from treewright.search.search_journal import Chosen
from treewright.search.tasks import Task

NAMES = list(policies.known())
BUDGET = 40


def in_order(search: Search, pick: random.Random, most: int) -> None:
    """Evaluates with up to `most` under way, which complete in a random order."""
    under_way: list[Task] = []
    while True:
        while len(under_way) < most and (task := search.ask(wait=False)) is not None:
            under_way.append(task)
        if not under_way:
            assert search.is_over
            return
        task = under_way.pop(pick.randrange(len(under_way)))
        result = walk(task)
        if task.seed % 7 == 0:
            search.fail(task, "unlucky")
        else:
            search.tell(task, result.score, data=result.data)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(lookahead=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_completion_orders_change_nothing(name: str, lookahead: int, seed: int) -> None:
    """With up to `lookahead` workers, in any order of completion: one tree."""
    trees = []
    for turn in range(3):
        pick = random.Random(seed + turn)
        search = treewright.open_search(policy=name, seed=5, budget=BUDGET, lookahead=lookahead)
        in_order(search, pick, most=1 if turn == 0 else lookahead)
        trees.append((shape(search), search.failures))
    assert trees[0] == trees[1] == trees[2]


def test_a_choice_knows_no_more_than_the_lookahead_allows(tmp_path: Path) -> None:
    with treewright.open_search(
        tmp_path, policy="ab-mcts", seed=1, budget=30, lookahead=6
    ) as search:
        in_order(search, random.Random(2), most=6)
    for line in search_journal.read(tmp_path):
        if isinstance(line, Chosen):
            assert line.seen == max(0, line.number - 6)


def test_the_lookahead_is_part_of_the_search(tmp_path: Path) -> None:
    """Another lookahead is another tree; so it is settled when the search begins."""
    with treewright.open_search(tmp_path, seed=1, budget=10) as search:
        search.run(walk, workers=3)
        assert search.settings.lookahead == 3
    with treewright.open_search(tmp_path, budget=20) as search:
        search.run(walk, workers=2)
        with pytest.raises(UsageError, match="4 workers need a lookahead"):
            search.run(walk, workers=4)
    with pytest.raises(UsageError, match="begun with lookahead=3, not 5"):
        treewright.open_search(tmp_path, lookahead=5)


@pytest.mark.parametrize("name", NAMES)
def test_threads_change_nothing(name: str) -> None:
    trees = []
    for workers in (1, 2, 4):
        with treewright.open_search(policy=name, seed=9, budget=BUDGET, lookahead=4) as search:
            search.run(walk, workers=workers)
            trees.append(shape(search))
    assert trees[0] == trees[1] == trees[2]


@pytest.mark.parametrize("name", NAMES)
def test_live_order_is_recorded_and_can_be_checked(name: str, tmp_path: Path) -> None:
    """It cannot be repeated, but it resumes, and what each choice knew is on record."""
    with treewright.open_search(tmp_path, policy=name, seed=3, budget=25, order="live") as search:
        in_order(search, random.Random(1), most=5)
        half = shape(search)
    with treewright.open_search(tmp_path, budget=50) as search:
        assert shape(search) == half
        in_order(search, random.Random(2), most=5)
    assert treewright.validate_search(tmp_path) == []
    known = [line.seen for line in search_journal.read(tmp_path) if isinstance(line, Chosen)]
    assert known == sorted(known)


def test_many_threads_ask_and_tell() -> None:
    """Threads that only ask, tell and fail; none of them waits for ever."""
    search = treewright.open_search(policy="mcts", seed=2, budget=60, lookahead=5)

    def work() -> None:
        while (task := search.ask()) is not None:
            result = walk(task)
            search.tell(task, result.score, data=result.data)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = treewright.open_search(policy="mcts", seed=2, budget=60, lookahead=5)
    alone.run(walk)
    assert shape(search) == shape(alone)


def test_asking_for_ever_is_an_error_and_not_a_hang() -> None:
    search = treewright.open_search(policy="mcts", lookahead=2)
    tasks = [search.ask(), search.ask()]
    with pytest.raises(UsageError, match="larger lookahead than 2"):
        search.ask()
    assert search.ask(wait=False) is None
    assert not search.is_over
    search.tell(tasks[1], 1.0)
    with pytest.raises(UsageError, match="larger lookahead"):
        search.ask()  # the third choice must know the first outcome, which is missing
    search.tell(tasks[0], 1.0)
    assert search.ask() is not None
