"""Ask and tell on disk: resuming, budgets, one owner, scores, errors, validation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import treewright
from tests.search.landscape import shape, walk
from treewright.kernel.errors import LockActive, StorageError, UsageError
from treewright.kernel.storage import journal
from treewright.search import policies, search_journal
from treewright.search.recorded_search import describe
from treewright.search.tasks import Task


def test_a_finished_search_takes_a_larger_budget(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path, seed=4, budget=10) as search:
        search.run(walk)
        assert search.is_over
        assert search.ask() is None
    with treewright.open_search(tmp_path) as search:
        assert search.budget == 10
        assert search.is_over
        search.set_budget(25)
        search.run(walk)
        found = shape(search)
    with treewright.open_search(seed=4, budget=25) as whole:
        whole.run(walk)
        assert shape(whole) == found
    assert treewright.validate_search(tmp_path) == []


def test_a_task_without_an_outcome_is_handed_out_again(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path, seed=4, budget=10, lookahead=3) as search:
        first, second, third = search.ask(), search.ask(), search.ask()
        assert first is not None
        assert third is not None
        search.tell(second, 1.0, data={"kept": True})
    with treewright.open_search(tmp_path) as search:
        again = search.ask()
        assert again is not None
        assert (again.number, again.seed, again.attempt) == (first.number, first.seed, 2)
        other = search.ask()
        assert other is not None
        assert other.number == third.number
        assert [(n.number, n.data) for n in search.nodes] == [(second.number, {"kept": True})]


def test_telling_twice(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path) as search:
        task = search.ask()
        assert task is not None
        node = search.tell(task, 2.0, data="x")
        assert search.tell(task, 2.0, data="x") is node
        with pytest.raises(UsageError, match="outcome already"):
            search.tell(task, 3.0)
        with pytest.raises(UsageError, match="outcome already"):
            search.fail(task, "no")
        with pytest.raises(UsageError, match="no task 99"):
            search.tell(99, 1.0)


def test_a_released_task_comes_back_and_teaches_nothing() -> None:
    search = treewright.open_search(policy="mcts", seed=1)
    task = search.ask()
    assert task is not None
    search.release(task, "the machine went away")
    again = search.ask()
    assert again is not None
    assert (again.number, again.attempt) == (task.number, 2)
    search.release(again)
    search.tell(again, 1.0)  # it came through after all
    third = search.ask()
    assert third is not None
    assert third.number == 2


def test_a_closed_search_takes_nothing(tmp_path: Path) -> None:
    """The outcome would not be on disk, so the caller must get an error."""
    with treewright.open_search(tmp_path) as search:
        task = search.ask()
    with pytest.raises(UsageError, match="closed"):
        search.tell(task, 1.0)
    with pytest.raises(UsageError, match="closed"):
        search.ask()
    assert search.nodes == []


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    with (
        treewright.open_search(tmp_path),
        pytest.raises(LockActive, match=r"pid .* use force=True"),
    ):
        treewright.open_search(tmp_path)
    treewright.open_search(tmp_path).close()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"order": "lives"}, "order is fixed or live, not 'lives'"),
        ({"direction": "up"}, "direction is maximize or minimize, not 'up'"),
        ({"gate": 3}, "gate is none or parent, not 3"),
    ],
)
def test_an_unknown_value_is_an_error_that_lists_the_values(given, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        treewright.open_search(**given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seed": 8}, "begun with seed=7, not 8"),
        ({"policy": "beam"}, "begun with policy='ab-mcts', not 'beam'"),
        ({"direction": "minimize"}, "direction"),
        ({"policy": "ab-mcts", "options": {"prior_weight": 2.0}}, "options"),
        ({"root": [1]}, "root_data"),
    ],
)
def test_settings_cannot_be_changed_later(tmp_path: Path, given, words: str) -> None:
    with treewright.open_search(tmp_path, policy="ab-mcts", seed=7) as search:
        search.ask()
    with pytest.raises(UsageError, match=words):
        treewright.open_search(tmp_path, **given)
    treewright.open_search(tmp_path, policy="ab-mcts", seed=7, options={}).close()


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "1", None, True, {}, {"a": "b"}])
def test_only_numbers_are_scores(score) -> None:
    search = treewright.open_search()
    task = search.ask()
    with pytest.raises(UsageError, match="score"):
        search.tell(task, score)
    search.tell(task, 1)


def test_data_is_the_same_before_and_after_a_crash(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path, root={"code": ("a", "b")}) as search:
        task = search.ask()
        assert task is not None
        assert task.parent.data == {"code": ["a", "b"]}
        node = search.tell(task, 1.0, data=(1, 2))
        assert node.data == [1, 2]
        with pytest.raises(UsageError, match="JSON"):
            search.tell(search.ask(), 1.0, data=object())


def test_smaller_can_be_better() -> None:
    with treewright.open_search(
        policy="best-first", direction="minimize", budget=60, seed=3
    ) as search:
        search.run(lambda task: treewright.Result(-walk(task).score, data=walk(task).data))
        assert search.best is not None
        assert search.best.score == min(node.score or 0.0 for node in search.nodes)
        assert search.best.score < 2.0


SAME_BUT_ROUNDED = [
    (0.3, 0.1 + 0.2),
    (0.0, 0.1 + 0.2 - 0.3),
    ({"a": 0.3, "b": 0.3}, {"a": 0.1 + 0.2, "b": 0.1 + 0.2}),
    ({"a": 0.3}, {"a": 0.1 + 0.2}),
]
"""Parents and children with sums in another order."""


def _grown_next(path: Path) -> int:
    with treewright.open_search(path) as search:
        task = search.ask()
        assert task is not None
        return task.parent.number


@pytest.mark.parametrize(("parent", "child"), SAME_BUT_ROUNDED)
def test_a_gain_within_rounding_does_not_pass_the_gate(tmp_path: Path, parent, child) -> None:
    with treewright.open_search(
        tmp_path, policy="best-first", root_score=parent, gate="parent", lookahead=1
    ) as search:
        node = search.tell(search.ask(), child)
        compared = search.compare(node, search.root)
        assert (compared.gain, compared.is_better) == (0.0, False)
    assert _grown_next(tmp_path) == 0
    assert treewright.validate_search(tmp_path) == []


def test_a_gain_in_one_small_config_is_no_rounding(tmp_path: Path) -> None:
    """That the others, which are the same, are large is no error of it."""
    large, small = {str(n): 1e8 for n in range(7)}, 5e-4
    with treewright.open_search(tmp_path, root_score={**large, "s": small}) as search:
        node = search.tell(search.ask(), {**large, "s": 2 * small})
        assert search.compare(node, search.root).gain == pytest.approx(small / 8)


def test_a_small_gain_that_is_one_passes_the_gate() -> None:
    for parent, child in (
        (1e-20, 2e-20),
        (1e9, 1e9 + 10),
        ({"a": 1.0, "b": 2.0}, {"a": 1.001, "b": 2.001}),
    ):
        with treewright.open_search(
            policy="best-first", root_score=parent, gate="parent"
        ) as search:
            assert search.compare(search.tell(search.ask(), child), search.root).is_better


def test_scores_by_config_are_compared_pair_by_pair() -> None:
    """A child that wins on every config by a little beats noise that a mean would drown it in."""
    base = {"a": 1.0, "b": 50.0, "c": -30.0, "d": 7.0}
    with treewright.open_search(
        policy="best-first", root_score=base, gate="parent", order="live"
    ) as search:
        better, noisy, worse = search.ask(), search.ask(), search.ask()
        won = search.tell(better, {c: v + 0.1 + 0.001 * i for i, (c, v) in enumerate(base.items())})
        search.tell(noisy, {"a": 9.0, "b": 43.0, "c": -30.5, "d": 6.0})
        search.tell(worse, {c: v - 0.1 for c, v in base.items()})
        gained = search.compare(won, search.root)
        assert gained.is_better
        assert gained.pairs == 4
        assert gained.low is not None
        assert 0.09 < gained.low < gained.gain < 0.11
        with pytest.raises(UsageError, match="no value for config 'd'"):
            search.tell(search.ask(), {"a": 1.0, "b": 2.0, "c": 3.0})
        with pytest.raises(UsageError, match="by config"):
            search.tell(search.ask(), 1.0)
        grown = {branch.number for branch in search._history.sequencer.tree.growing}
        assert grown == {0, won.number}, "what is not better beyond noise is not grown"


def test_an_exception_stops_and_leaves_its_task_untried(tmp_path: Path) -> None:
    def broken(task: Task) -> float:
        if task.number == 4:
            raise ZeroDivisionError("a bug of mine")
        return 1.0

    with treewright.open_search(tmp_path, seed=1, budget=8, lookahead=2) as search:
        with pytest.raises(ZeroDivisionError):
            search.run(broken, workers=2)
        assert 4 not in {node.number for node in search.nodes}
        assert search.failures == {}
        search.run(lambda task: 1.0)
        assert search.evaluations == 8


def test_exceptions_in_catch_are_failures() -> None:
    def evaluate(task: Task) -> float:
        if task.number == 2:
            raise ValueError("does not compile")
        if task.number == 3:
            raise treewright.EvaluationFailed("too slow")
        return 1.0

    with treewright.open_search(budget=6) as search:
        search.run(evaluate, catch=(ValueError,))
        assert search.failures == {
            2: "ValueError: does not compile",
            3: "EvaluationFailed: too slow",
        }
        assert search.evaluations == 6


def test_a_wrong_score_stops_the_run() -> None:
    with treewright.open_search(budget=6) as search, pytest.raises(UsageError, match="score"):
        search.run(lambda task: "good")  # type: ignore[arg-type,return-value]


def test_dask_workers(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path, seed=9, budget=12, lookahead=2) as search:
        search.run(walk, workers=2, backend="dask")
        there = shape(search)
    with treewright.open_search(seed=9, budget=12, lookahead=2) as here:
        here.run(walk)
        assert shape(here) == there
    assert treewright.validate_search(tmp_path) == []


KILLED = textwrap.dedent(
    """
    import os, signal, sys
    import treewright
    from tests.search.landscape import walk
    from treewright.kernel.storage import journal

    path = sys.argv[1]
    write, writes = journal.write_all, 0

    def counted(fd, data):
        global writes
        writes += 1
        if writes == at:
            write(fd, data[: len(data) // 2])  # torn
            os.kill(os.getpid(), signal.SIGKILL)
        write(fd, data)

    journal.write_all = counted
    while True:  # each turn a process of its own, killed one write later than the last
        at = int(sys.stdin.readline() or 0)
        if not at:
            break
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            print("dead", flush=True)
            continue
        writes = 0
        with treewright.open_search(path + str(at), policy="mcts", seed=6, budget=9,
                                    lookahead=2) as search:
            search.run(walk)
        os._exit(0)
    """
)


def test_killed_at_every_write_it_resumes_to_the_same_tree(tmp_path: Path) -> None:
    """Real kills, inside the write, so that a torn line is left behind."""
    with treewright.open_search(policy="mcts", seed=6, budget=9, lookahead=2) as whole:
        whole.run(walk)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "killed-")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdin
    assert process.stdout
    survived = 0
    for at in range(1, 40):
        process.stdin.write(f"{at}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "dead\n"
        place = tmp_path / f"killed-{at}"
        with treewright.open_search(place, policy="mcts", seed=6, budget=9, lookahead=2) as search:
            survived += search.is_over
            search.run(walk)
            assert shape(search) == shape(whole), at
        assert treewright.validate_search(place) == [], at
    process.stdin.close()
    assert process.wait(120) == 0
    process.stdout.close()
    assert survived, "the last trials run through"


def find_changed(path: Path, kind: str, change) -> None:
    file = path / search_journal.EVENTS
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    target = [line for line in lines if line["type"] == kind][5]
    change(target)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("chosen", lambda line: line.update(parent=0 if line["parent"] else 1), "chooses"),
        ("told", lambda line: line.update(score=123.0), "chooses"),
        ("chosen", lambda line: line.update(seen=line["seen"] - 1), "outcomes"),
        ("told", lambda line: line.update(number=1), "outcome already"),
    ],
)
def test_validation_finds_changed_lines(tmp_path: Path, kind, change, words) -> None:
    with treewright.open_search(tmp_path, policy="best-first", seed=2, budget=30) as search:
        search.run(walk)
    assert treewright.validate_search(tmp_path) == []
    find_changed(tmp_path, kind, change)
    problems = treewright.validate_search(tmp_path)
    assert problems
    assert words in problems[0]


def test_a_damaged_journal_is_one_line(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path, budget=3) as search:
        search.run(walk)
    file = tmp_path / search_journal.EVENTS
    file.write_text(file.read_text().replace('"told"', '"sold"'))
    with pytest.raises(StorageError, match="cannot be read"):
        treewright.open_search(tmp_path)
    with pytest.raises(UsageError, match="no search at"):
        treewright.validate_search(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("chosen", lambda line: line.update(parent=99)),
        ("chosen", lambda line: line.update(parent=-1)),
        ("chosen", lambda line: line.update(seen=99)),
        ("chosen", lambda line: line.update(action="no such")),
        ("told", lambda line: line.update(number=99)),
    ],
)
def test_a_journal_that_does_not_fit_together_is_one_line(tmp_path: Path, kind, change) -> None:
    with treewright.open_search(tmp_path, policy="random", seed=2, budget=9) as search:
        search.run(walk)
    find_changed(tmp_path, kind, change)
    with pytest.raises(StorageError, match=f"does not fit together at {kind}"):
        treewright.open_search(tmp_path)
    with pytest.raises(StorageError, match="does not fit together"):
        describe(tmp_path)
    assert treewright.validate_search(tmp_path)


class Misguided(policies.Policy, frozen=True, tag="misguided"):
    name = "misguided"
    summary = "for this test"
    parent: int = 0
    action: str | None = None

    def choose(self, tree, rng) -> policies.Choice:
        return policies.Choice(self.parent, self.action)


@pytest.mark.parametrize("options", [{"parent": 7}, {"parent": -1}, {"action": "x"}])
def test_a_policy_that_chooses_a_missing_node(options, monkeypatch) -> None:
    monkeypatch.setattr(policies, "make", lambda name, options: Misguided(**options))
    search = treewright.open_search(policy="misguided", options=options)
    with pytest.raises(UsageError, match="policy misguided chose"):
        search.ask()


def test_the_last_lines_of_a_replaced_owner_are_known(tmp_path: Path, monkeypatch) -> None:
    """It looked before the next owner was there and wrote after that one had read."""
    first = treewright.open_search(tmp_path, budget=2)
    task = first.ask()
    read = search_journal._read

    def read_and_late(path: Path) -> list:
        lines = read(path)
        monkeypatch.setattr(search_journal, "_read", read)
        monkeypatch.setattr(first._journal._journal, "_guard", lambda: None)
        first.tell(task, 1.0)
        return lines

    monkeypatch.setattr(search_journal, "_read", read_and_late)
    with treewright.open_search(tmp_path, force=True) as second:
        assert [node.score for node in second.nodes] == [1.0]
        second.run(walk)
    treewright.open_search(tmp_path).close()


def test_a_search_begins_with_its_budget_in_one_write(tmp_path: Path, monkeypatch) -> None:
    """Killed between the two, it would have gone on for ever."""
    written: list[bytes] = []
    with treewright.open_search(tmp_path, budget=2) as search:
        write = journal.write_all
        monkeypatch.setattr(
            journal, "write_all", lambda fd, data: (written.append(data), write(fd, data))
        )
        search.ask()
    assert b'"created"' in written[0]
    assert b'"budget"' in written[0]


def test_a_search_that_ran_out_is_over_when_opened_again(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path, policy="beam", options={"depth": 1}) as search:
        while not search.is_over:
            task = search.ask()
            assert task is not None
            search.tell(task, 1.0)
    with treewright.open_search(tmp_path) as search:
        assert search.is_over
    assert treewright.validate_search(tmp_path) == []


class Lookalike(policies.Beam, frozen=True, tag="beam"):
    """Has the name of a policy in the box."""


@pytest.mark.parametrize("policy", [Misguided(), Lookalike(), policies.Beam, 5])
def test_a_policy_that_is_not_registered_is_not_replaced_by_another(policy) -> None:
    with pytest.raises(UsageError, match="policy"):
        treewright.open_search(policy=policy)


def test_one_text_is_not_several_actions() -> None:
    with pytest.raises(UsageError, match="several texts"):
        treewright.open_search(actions="grow")


def test_a_forked_process_does_not_own_its_parents_search(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path) as search:
        task = search.ask()
        assert task is not None
        child = os.fork()
        if not child:
            refused = 1
            try:
                search.tell(task, 2.0)
            except UsageError:
                refused = 0
            search.close()
            os._exit(refused)
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(LockActive):
            treewright.open_search(tmp_path)
        search.tell(task, 1.0)
    with treewright.open_search(tmp_path) as search:
        assert [node.score for node in search.nodes] == [1.0]


def test_a_wrong_backend_settles_nothing(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path, budget=4) as search:
        with pytest.raises(UsageError, match="thread"):
            search.run(walk, workers=7, backend="threds")
        search.run(walk, workers=2)
        assert search.settings.lookahead == 2


def test_a_budget_is_changed_where_it_is_recorded(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path, budget=4) as search, pytest.raises(AttributeError):
        search.budget = 9  # type: ignore[misc]


def test_an_evaluation_cannot_wait_for_others() -> None:
    """The next choice may need the very outcome that this evaluation is to have."""
    with treewright.open_search(policy="random", budget=8, lookahead=2) as search:

        def evaluate(task: Task) -> float:
            while search.ask() is not None:
                pass
            return 1.0

        caught: list[BaseException] = []

        def run() -> None:
            try:
                search.run(evaluate, workers=2, backend="threads")
            except UsageError as error:
                caught.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive(), "it waits for itself"
        assert "would wait inside an evaluation of run()" in str(caught[0])
        assert search.evaluations == 0

    def two_at_once(task: Task) -> float:
        if (other := search.ask(wait=False)) is not None:
            search.tell(other, 2.0)
        return 1.0

    with treewright.open_search(policy="random", budget=8, lookahead=4) as search:
        search.run(two_at_once, workers=2, backend="threads")
        assert search.evaluations == 8
