"""The throttle: the documented pause, a busy machine, and a real competing load."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from tests.waiting import until
from treewright.orchestrator.scheduling.throttle import Throttle


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
