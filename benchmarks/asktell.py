"""What asking and telling cost beside Optuna and treequest: `python -m benchmarks asktell`.

The evaluation returns at once; what is left is the search. In memory and as the tree grows it is
processor time, which a busy machine changes least; durable it is the clock's. The contestants
take turns.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import treewright
from benchmarks.measure import Row, Table, medians, take_turns
from treewright.search import policies
from treewright.search.durable_search import Search

_NODES = 100


def score(number: int) -> float:
    return ((number * 2654435761) & 0xFFFFFFFF) / 2**32


def asktell(quick: bool) -> Table:
    """The tables of `docs/benchmarks.md`: in memory, durable, growth."""
    turns = 3 if quick else 9
    sizes = (100, 1_000, 10_000) if quick else (100, 1_000, 10_000, 100_000)
    names = list(policies.known())
    in_memory: dict[str, Callable[[], float]] = {name: _in_memory(name) for name in names}
    in_memory["optuna"] = _optuna_in_memory
    in_memory["treequest"] = _treequest
    taken = medians(take_turns(in_memory, turns))
    rows = [
        Row(f"{name}, in memory, first {_NODES}", taken[name] * 1e6, "us", "Optuna in memory",
            taken[name] / taken["optuna"], 1.0)
        for name in names
    ]  # fmt: skip
    rows += [
        Row(f"{name}, first {_NODES}", taken[name] * 1e6, "us", "treequest AB-MCTS-A",
            taken[name] / taken["treequest"], 1 / 3)
        for name in ("mcts", "ab-mcts")
    ]  # fmt: skip
    durable = medians(take_turns({"ours": _durable, "optuna": _optuna_durable}, max(3, turns // 2)))
    rows.append(
        Row("ab-mcts, durable", durable["ours"] * 1e6, "us", "Optuna JournalStorage",
            durable["ours"] / durable["optuna"], 1.0)
    )  # fmt: skip
    for name in names:
        times = _growth(name, sizes)
        rows += [
            Row(f"{name} at {size:,}", taken_there * 1e6, "us", f"at {sizes[0]}",
                taken_there / times[0])
            for size, taken_there in zip(sizes[1:], times[1:], strict=True)
        ]  # fmt: skip
    return Table("asktell", "one ask and tell, an evaluation that returns at once", rows)


def _steps(search: Search, count: int, clock: Callable[[], float] = time.process_time) -> float:
    begun = clock()
    for _ in range(count):
        task = search.ask()
        assert task is not None
        search.tell(task, score(task.number))
    return (clock() - begun) / count


def _in_memory(name: str) -> Callable[[], float]:
    return lambda: _steps(treewright.open_search(policy=name, seed=1), _NODES)


def _durable() -> float:
    with (
        tempfile.TemporaryDirectory() as place,
        treewright.open_search(Path(place) / "search", policy="ab-mcts", seed=1) as search,
    ):
        return _steps(search, _NODES, time.perf_counter)


def _growth(name: str, sizes: tuple[int, ...]) -> list[float]:
    """Seconds per step over the 100 that end at each size."""
    search = treewright.open_search(policy=name, seed=1)
    times, done = [], 0
    for size in sizes:
        if size - 100 > done:
            _steps(search, size - 100 - done)
        times.append(_steps(search, 100))
        done = size
    return times


def _optuna_in_memory() -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.RandomSampler(seed=1)
    return _optuna_steps(optuna.create_study(sampler=sampler), time.process_time)


def _optuna_durable() -> float:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as place:
        backend = JournalFileBackend(str(Path(place) / "journal.log"))
        storage = optuna.storages.JournalStorage(backend)
        sampler = optuna.samplers.RandomSampler(seed=1)
        study = optuna.create_study(storage=storage, sampler=sampler)
        return _optuna_steps(study, time.perf_counter)


def _optuna_steps(study: Any, clock: Callable[[], float]) -> float:
    begun = clock()
    for number in range(_NODES):
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0)  # a trial without a parameter would choose nothing
        study.tell(trial, score(number))
    return (clock() - begun) / _NODES


def _treequest() -> float:
    from treequest.algos.ab_mcts_a.algo import ABMCTSA

    algorithm = ABMCTSA()
    state = algorithm.init_tree()
    count = 0

    def generate(parent: int | None) -> tuple[int, float]:
        return count, score(count)

    begun = time.process_time()
    for _ in range(_NODES):
        count += 1
        state = algorithm.step(state, {"grow": generate}, inplace=True)
    return (time.process_time() - begun) / _NODES
