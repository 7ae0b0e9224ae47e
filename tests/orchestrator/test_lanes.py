"""How many goals at once: the lanes for light and heavy goals, and the throttle."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import until
from treewright.orchestrator.scheduling.lanes import MAX_DELAY_SECONDS, Lanes, Ticket, backoff
from treewright.orchestrator.scheduling.throttle import Throttle


def test_a_full_lane_does_not_keep_the_other_waiting() -> None:
    lanes: Lanes[str] = Lanes(max_light=2, max_heavy=1)
    for name in ("h1", "h2", "h3"):
        lanes.submit(name, heavy=True)
    lanes.submit("l1", heavy=False)
    first, second = lanes.admit(0), lanes.admit(0)
    assert first is not None
    assert second is not None
    assert [first.item, second.item] == ["h1", "l1"]
    assert lanes.admit(0) is None
    assert lanes.waiting == 2
    lanes.release(first)
    following = lanes.admit(0)
    assert following is not None
    assert following.item == "h2"


def test_a_goal_that_comes_back_waits_longer_each_time_and_blocks_nobody() -> None:
    lanes: Lanes[str] = Lanes(1, 1)
    lanes.submit("unlucky", heavy=False)
    lanes.submit("next", heavy=False)
    ticket = lanes.admit(0.0)
    assert ticket is not None
    assert ticket.item == "unlucky"
    lanes.retry(ticket, 10.0)
    assert lanes.next_due == 10.0 + backoff(1)
    other = lanes.admit(10.0)
    assert other is not None
    assert other.item == "next"
    lanes.release(other)
    assert lanes.admit(10.0) is None
    again = lanes.admit(10.0 + backoff(1))
    assert again is ticket
    assert again.retries == 1
    assert [backoff(n) for n in (1, 2, 3)] == [0.5, 1.0, 2.0]
    assert backoff(1000) == MAX_DELAY_SECONDS


@given(
    arrivals=st.lists(
        st.tuples(st.booleans(), st.integers(1, 20), st.integers(0, 3)), min_size=1, max_size=60
    ),
    light=st.integers(1, 4),
    heavy=st.integers(1, 3),
    flood=st.integers(0, 3),
)
def test_every_goal_gets_its_turn_in_order_of_arrival(
    arrivals: list[tuple[bool, int, int]], light: int, heavy: int, flood: int
) -> None:
    """A goal arrives each second, with `flood` more light ones; each takes some seconds and may
    come back up to three times. Whatever else arrives, all start, in order within their lane."""
    lanes: Lanes[tuple[int, int, int]] = Lanes(light, heavy)
    running: list[tuple[float, Ticket[tuple[int, int, int]]]] = []
    first_starts: dict[str, list[int]] = {"light": [], "heavy": []}
    finished: set[int] = set()
    pending = list(enumerate(arrivals))
    number = len(arrivals)
    now = 0.0
    while len(finished) < number:
        if pending:
            index, (is_heavy, seconds, returns) = pending.pop(0)
            lanes.submit((index, seconds, returns), heavy=is_heavy)
            for _ in range(flood):
                lanes.submit((number, 1, 0), heavy=False)
                number += 1
        for end, ticket in [pair for pair in running if pair[0] <= now]:
            running.remove((end, ticket))
            index, seconds, returns = ticket.item
            if ticket.retries < returns:
                lanes.retry(ticket, now)
            else:
                lanes.release(ticket)
                finished.add(index)
        while (admitted := lanes.admit(now)) is not None:
            if admitted.retries == 0:
                first_starts[admitted.lane].append(admitted.number)
            running.append((now + admitted.item[1], admitted))
        by_lane = [ticket.lane for _, ticket in running]
        assert by_lane.count("light") <= light
        assert by_lane.count("heavy") <= heavy
        assert lanes.running == len(running)
        now += 1.0
        # All work, one after another, with every possible delay: an upper bound.
        bound = sum((r + 1) * s + r * MAX_DELAY_SECONDS for _, s, r in arrivals)
        assert now < 10 + bound + number
    for order in first_starts.values():
        assert order == sorted(order)


def test_the_sleep_is_the_documented_one() -> None:
    loads = iter([1.0, 0.0])
    throttle = Throttle(0.8, read_load=lambda: next(loads))
    assert throttle.observe() == pytest.approx(4 * 0.2)
    assert throttle.observe() == pytest.approx(4 * (0.9 - 0.8))
    assert throttle.ema == pytest.approx(0.9)


def test_a_sleep_is_never_longer_than_a_second_and_none_below_the_target() -> None:
    assert Throttle(0.5, read_load=lambda: 50.0).observe() == 1.0
    assert Throttle(0.5, read_load=lambda: 0.5).observe() == 0.0


def test_no_waiting_on_an_idle_machine() -> None:
    throttle = Throttle(0.5, read_load=lambda: 0.1)
    assert asyncio.run(throttle.pause()) == 0.0


def test_a_start_on_a_machine_that_is_always_busy_waits_one_second() -> None:
    sleeps: list[float] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)

    throttle = Throttle(0.5, read_load=lambda: 4.0, sleep=sleep)

    async def start_three() -> list[float]:
        return [await throttle() for _ in range(3)]

    assert asyncio.run(start_three()) == sleeps == [1.0, 1.0, 1.0]
    assert throttle.slept_seconds == 3.0


def test_a_real_competing_process_is_noticed() -> None:
    """With a target of nothing, any load at all holds work back, by the real load average."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        until(lambda: os.getloadavg()[0] > 0.05, 120, "the load average to rise")
        throttle = Throttle(0.0)
        assert 0 < asyncio.run(throttle.pause()) <= 1.0
        assert throttle.ema > 0
    finally:
        busy.kill()
        busy.wait()


def test_the_first_wait_is_said_once() -> None:
    said: list[str] = []

    async def no_time(_: float) -> None:
        return

    throttle = Throttle(0.5, read_load=lambda: 2.0, sleep=no_time)
    throttle.on_first_wait = said.append

    async def twice() -> None:
        await throttle.pause()
        await throttle.pause()

    asyncio.run(twice())
    assert said == [
        "the load of this machine is 2.0 per core, above --cpu-target 0.5: "
        "each start waits up to 1 s"
    ]
