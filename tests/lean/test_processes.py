"""Lean processes that are lent: lending, recycling, losing, cancelling."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from tests.lean.conftest import state
from tests.lean.endless import SLOW
from tests.waiting import until
from treewright.lean.hosts.host import Launch
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.processes import LeanProcesses, SessionLimits
from treewright.lean.session import async_session
from treewright.lean.session.answers import (
    Cancelled,
    ProofState,
    SessionLost,
    TacticError,
    Timeout,
)
from treewright.lean.session.errors import LeanError

pytestmark = pytest.mark.xdist_group("lean-session")

RESULTS = ProofState | TacticError | Timeout | Cancelled | SessionLost


@pytest.fixture(scope="module")
def pool(home: LeanHome) -> Iterator[LeanProcesses]:
    with LeanProcesses(home, limits=SessionLimits(sessions=1, spares=1)) as shared:
        yield shared


def test_a_session_is_lent_and_comes_back_clean(pool: LeanProcesses) -> None:
    with pool.session() as first:
        left = state(first.start("1 = 1"))
        pid = first.pid
    with pool.session() as again:
        assert again.pid == pid
        assert again.memory().states == 0
        assert isinstance(again.run_tactic(left, "rfl"), TacticError)


def test_a_lost_session_costs_the_next_borrower_nothing(pool: LeanProcesses) -> None:
    pool.wait_until_ready(120)
    warm = [lendable.session.pid for lendable in pool._idle]
    with pool.session() as doomed:
        os.kill(doomed.pid, signal.SIGKILL)
        result = doomed.start("1 = 1")
        assert isinstance(result, SessionLost)
    with pool.session() as spare:
        assert spare.pid in warm  # not one that had to be started for us
        assert state(spare.start("1 = 1")).goals
    pool.wait_until_ready(120)
    assert pool.stats.lost >= 1


def test_an_idle_session_that_died_is_not_lent(pool: LeanProcesses) -> None:
    pool.wait_until_ready(120)
    with pool.session() as session:
        pid = session.pid
    os.kill(pid, signal.SIGKILL)
    while session.alive:
        time.sleep(0.001)
    with pool.session() as other:
        assert other.pid != pid
        assert state(other.start("1 = 1")).goals


def test_waiting_has_a_limit_and_an_order(pool: LeanProcesses) -> None:
    order: list[int] = []
    with pool.session():
        with pytest.raises(LeanError, match="no Lean session became free"), pool.session(0.05):
            pass
        threads = []
        for index in range(4):
            waiting = pool.stats.waiting
            thread = threading.Thread(target=_borrow, args=(pool, order, index))
            thread.start()
            threads.append(thread)
            while pool.stats.waiting == waiting:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3]


def _borrow(pool: LeanProcesses, order: list[int], index: int) -> None:
    with pool.session():
        order.append(index)


def test_cancelling_a_task_frees_its_session_at_once(
    pool: LeanProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_session, "CANCEL_GRACE_SECONDS", 100.0)  # the machine may be busy

    async def scenario() -> float:
        started = asyncio.Event()

        async def loser() -> None:
            async with pool.async_session() as session:
                opened = await session.start("∀ n : Nat, n = n")
                assert isinstance(opened, ProofState)
                started.set()
                await session.run_tactic(opened, SLOW, timeout=60)

        task = asyncio.create_task(loser())
        await started.wait()
        (lent,) = pool._lent
        while lent.session._process._running_id is None:  # until the step is under way
            await asyncio.sleep(0.001)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with pool.async_session() as session:
            taken = time.monotonic() - begun
            assert isinstance(await session.start("1 = 1"), ProofState)
        return taken

    lost = pool.stats.lost
    times = sorted(asyncio.run(scenario()) for _ in range(3))
    assert times[0] < 5, times  # the tactic would take minutes; docs/benchmarks.md has the figure
    assert pool.stats.lost == lost


def test_cancelling_a_waiting_task_leaks_no_session(pool: LeanProcesses) -> None:
    async def scenario() -> None:
        async with pool.async_session():
            tasks = [asyncio.create_task(_hold(pool)) for _ in range(20)]
            await asyncio.sleep(0)
            while pool.stats.waiting < 20:
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        # Cancelled just as a session is handed over.
        for _ in range(50):
            task = asyncio.create_task(_hold(pool))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    assert pool.stats.lent == 0
    assert pool.stats.waiting == 0
    with pool.session(120) as session:
        assert session.alive


async def _hold(pool: LeanProcesses) -> None:
    async with pool.async_session():
        await asyncio.sleep(60)


def test_sessions_are_recycled_by_memory_and_use(home: LeanHome) -> None:
    with LeanProcesses(home, limits=SessionLimits(heap_bytes=1)) as pool:
        with pool.session() as session:
            session.start("1 = 1")
        assert pool.stats.recycled == 1


def test_killed_at_random_under_load_every_request_ends(pool: LeanProcesses) -> None:
    """While sessions are killed at random, every request gives a result or a typed error."""
    chance = random.Random(7)
    ended = threading.Event()
    kinds: dict[str, int] = {}
    problems: list[BaseException] = []

    def user() -> None:
        try:
            while not ended.is_set():
                with pool.session(60) as session:
                    opened = session.start("∀ p q : Prop, p ∧ q → q ∧ p")
                    ends = chance.random() < 0.9
                    for step in ("intro p q h", "exact ⟨h.2, h.1⟩") if ends else (SLOW,):
                        if isinstance(opened, ProofState):
                            opened = session.run_tactic(opened, step, 60 if ends else 0.2)
                    assert isinstance(opened, RESULTS)
                    kinds[type(opened).__name__] = kinds.get(type(opened).__name__, 0) + 1
        except BaseException as error:
            problems.append(error)

    def alive() -> list[int]:
        with pool._changed:
            return [each.session.pid for each in [*pool._lent, *pool._idle]]

    threads = [threading.Thread(target=user) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        pool.wait_until_ready(120)
        time.sleep(chance.uniform(0.05, 0.3))
        # Between being lent and being taken back a session is in neither list.
        victims = until(alive, seconds=60, what="a session to kill")
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(victims), signal.SIGKILL)
    until(lambda: problems or kinds.get("ProofState"), what="a proof among the deaths")
    ended.set()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a request hangs"
    assert not problems, problems
    assert kinds.get("ProofState", 0) > 0
    assert pool.stats.lent == 0


class Broken(LeanHome):
    """A Lean that cannot be started."""

    def launch(self) -> Launch:
        raise LeanError("no Lean here")


def test_a_lean_that_does_not_start_is_an_error_not_a_hang(home: LeanHome) -> None:
    with (
        LeanProcesses(Broken(home.path, home.node)) as pool,
        pytest.raises(LeanError, match="no Lean here"),
        pool.session(30),
    ):
        pass


def test_a_closed_pool_says_so(home: LeanHome) -> None:
    pool = LeanProcesses(home)
    pool.close()
    with pytest.raises(LeanError, match="closed"), pool.session():
        pass
    assert pool.stats.idle == 0
