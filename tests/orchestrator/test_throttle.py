"""The throttle: the documented sleep, holding a target, and a real competing load."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from tests.waiting import until
from treewright.orchestrator.scheduling.throttle import Throttle


class Machine:
    """A simulated machine: others' load, ours while we work, and a clock that sleeping moves."""

    def __init__(self, others: float) -> None:
        self.others = others
        self.working = 0.0
        self.load = others
        self.now = 0.0
        self.sleeps: list[float] = []

    def spend(self, seconds: float, own: float) -> None:
        """The 1-minute load average follows what runs."""
        for _ in range(max(1, round(seconds * 10))):
            self.load += (self.others + own - self.load) * (0.1 / 60)
        self.now += seconds
        self.working += seconds * own

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.spend(seconds, 0.0)


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


def test_the_target_is_held_beside_a_competing_load() -> None:
    """Others use 0.3 per core, we would use 1.0 more: the average stays at the target."""
    machine = Machine(others=0.3)
    throttle = Throttle(0.5, read_load=lambda: machine.load, sleep=machine.sleep)

    async def work() -> list[float]:
        seen = []
        while machine.now < 4000:
            await throttle.pause()
            machine.spend(2.0, 1.0)
            if machine.now > 1000:
                seen.append(machine.load)
        return seen

    seen = asyncio.run(work())
    average = sum(seen) / len(seen)
    assert average < 0.56
    assert machine.working > 0.1 * machine.now, "what is left of the target is used"


def test_on_a_machine_that_is_always_busy_work_goes_on_slowly() -> None:
    machine = Machine(others=4.0)
    throttle = Throttle(0.5, patience=30.0, read_load=lambda: machine.load, sleep=machine.sleep)

    async def work() -> int:
        done = 0
        while machine.now < 3200:
            await throttle.pause()
            machine.spend(2.0, 1.0)
            done += 1
        return done

    assert asyncio.run(work()) == 100
    assert throttle.slept_seconds == pytest.approx(3000.0)


def test_a_real_competing_process_is_noticed() -> None:
    """With a target of nothing, any load at all holds work back, by the real load average."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        until(lambda: os.getloadavg()[0] > 0.05, 120, "the load average to rise")
        throttle = Throttle(0.0, patience=0.05)
        assert 0.05 <= asyncio.run(throttle.pause()) < 0.07
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
    assert said == ["the load is 2.0 a core, above --cpu-target 0.5: starts are held back"]
