"""Turns at an endpoint: the arithmetic for any history, and real threads and processes at a real
HTTP server."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.llm.endpoints import StandIn, Step, completion, stand_in
from tests.waiting import until
from treewright.llm import turns
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError, Endpoint
from treewright.llm.limits import MINUTE, Lately, Limits, wait
from treewright.llm.shared_turns import LONGEST_HOLD_SECONDS, SharedTurns
from treewright.llm.wire import Message, Request

HELLO = Request([Message("user", "Say hello.")])
STEPS = st.one_of(
    st.tuples(st.just("advance"), st.floats(0, 40)),
    st.tuples(st.just("enter"), st.just(0.0)),
    st.tuples(st.just("take"), st.integers(0, 9)),
    st.tuples(st.just("leave"), st.integers(0, 9)),
    st.tuples(st.just("hold"), st.floats(0, 90)),
)
COSTS = 10
"""Tokens of each request below."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextlib.contextmanager
def shared(clock: Clock) -> Iterator[SharedTurns]:
    with tempfile.TemporaryDirectory() as directory:
        yield SharedTurns(Path(directory) / "turns.sqlite", "e", clock)


LIMIT = st.none() | st.integers(1, 4)


@settings(max_examples=60)
@given(LIMIT, LIMIT, LIMIT, st.lists(STEPS, max_size=60))
@example(1, None, None, [("enter", 0), ("advance", 60.0), ("enter", 0), ("take", 0), ("take", 0)])
@example(None, 1, 1, [("enter", 0), ("advance", 60.0), ("enter", 0), ("take", 1), ("take", 0)])
def test_no_history_exceeds_a_limit(places, requests, tens, steps):
    clock = Clock()
    limits = Limits(places, requests, tens and tens * COSTS)
    waiting: list[int] = []
    under_way: list[int] = []
    admitted: list[float] = []
    held_until = 0.0
    with shared(clock) as queue:
        for what, amount in steps:
            if what == "advance":
                clock.now += amount
            elif what == "hold":
                held_until = max(held_until, clock.now + amount)
                queue.hold(amount)
            elif what == "enter":
                waiting.append(queue.enter(limits, COSTS))
            elif what == "leave" and under_way:
                queue.leave(under_way.pop(int(amount) % len(under_way)))
            elif what == "take" and waiting:
                ticket = waiting[int(amount) % len(waiting)]
                answer, _ = queue.take(ticket, COSTS, 1e6)
                if answer == 0:
                    waiting.remove(ticket)
                    under_way.append(ticket)
                    admitted.append(clock.now)
                    assert clock.now >= held_until
                else:
                    assert answer is None or answer > 0
            assert places is None or len(under_way) <= places
    most = min((limit for limit in (requests, tens) if limit is not None), default=None)
    if most is not None:
        for first, last in zip(admitted, admitted[most:], strict=False):
            assert last - first >= MINUTE - 1e-6, "more than allowed within a minute"


@given(st.integers(1, 5), st.integers(1, 40))
def test_whoever_waits_as_told_is_never_sent_away_twice(allowed, wanted):
    now = 0.0
    sent: list[tuple[float, int]] = []
    for _ in range(wanted):
        answer = wait(Limits(requests=allowed), Lately(sent=sent[-allowed:]), now)
        assert answer is not None
        now += answer
        again = wait(Limits(requests=allowed), Lately(sent=sent[-allowed:]), now)
        assert again is not None
        assert again < 1e-6, "only by what a float cannot hold"
        sent.append((now, 0))
    assert now <= (wanted - 1) // allowed * MINUTE + 1


def test_a_request_above_the_token_limit_goes_when_the_minute_is_its_own():
    limits, now = Limits(tokens=100), 50.0
    assert wait(limits, Lately(), now, tokens=500) == 0
    assert wait(limits, Lately(sent=[(20.0, 1)]), now, tokens=500) == pytest.approx(30)
    assert wait(limits, Lately(sent=[(20.0, 60), (30.0, 30)]), now, tokens=50) == pytest.approx(30)
    assert wait(limits, Lately(sent=[(20.0, 60), (30.0, 30)]), now, tokens=10) == 0


def test_what_an_answer_really_cost_is_what_counts():
    clock, limits = Clock(), Limits(tokens=100)
    with shared(clock) as queue:
        first = queue.enter(limits, 100)
        assert queue.take(first, 100, 60)[0] == 0
        queue.leave(first, tokens=20)
        second = queue.enter(limits, 80)
        assert queue.take(second, 80, 60)[0] == 0


def test_the_stricter_of_two_limits_holds_for_both_users():
    with shared(Clock()) as queue:
        strict, generous = Limits(2, 10), Limits(None, 20)
        tickets = [queue.enter(limits, 1) for limits in (strict, generous, generous)]
        assert [queue.take(ticket, 1, 60)[0] for ticket in tickets] == [0, 0, None]


def test_one_endpoint_is_one_queue_whatever_the_model(monkeypatch):
    def of(**fields) -> str:
        return turns._identity(Endpoint(**{"base_url": "http://h/v1", "model": "m"} | fields))

    assert of() == of(base_url="http://h/v1/", model="other")
    assert of() != of(api_key_env="OTHER_KEY")
    assert of() != of(base_url="http://other/v1")
    assert "hunter2" not in of(base_url="https://me:hunter2@h/v1")
    monkeypatch.setenv("TREEWRIGHT_LLM_KEYS", "http://h=OTHER_KEY")
    assert of() == of(api_key_env="OTHER_KEY"), "however the key is given"


def test_whoever_waits_and_stops_asking_holds_nobody_up():
    clock = Clock()
    with shared(clock) as queue:
        stopped, other = queue.enter(Limits(1), 1), queue.enter(Limits(1), 1)
        assert queue.take(other, 1, 60)[0] is None, "the other was first"
        clock.now += 10
        assert queue.take(other, 1, 60)[0] == 0
        assert queue.take(stopped, 1, 60)[0] is None


def test_what_took_longer_than_it_could_is_over():
    clock = Clock()
    with shared(clock) as queue:
        lost, other = queue.enter(Limits(1), 1), queue.enter(Limits(1), 1)
        assert queue.take(lost, 1, 100)[0] == 0
        clock.now += 99
        assert queue.take(other, 1, 100)[0] is None
        clock.now += 60
        assert queue.take(other, 1, 100)[0] == 0


def test_what_was_before_the_machine_was_started_again_is_forgotten():
    clock = Clock()
    with shared(clock) as queue:
        assert queue.take(queue.enter(Limits(1, 1), 1), 1, 60)[0] == 0
        queue.hold(500)
        clock.now = 3.0
        assert queue.take(queue.enter(Limits(1, 1), 1), 1, 60) == (0, 0)


def test_no_endpoint_can_close_itself_for_longer_than_an_hour():
    with shared(Clock()) as queue:
        queue.hold(1e12)
        _, held = queue.take(queue.enter(Limits(), 1), 1, 60)
        assert held == LONGEST_HOLD_SECONDS


def test_a_hold_longer_than_ones_patience_is_not_waited_for():
    with stand_in(Step(429, {}, {"retry-after": "500"}), Step(body=completion("hi"))) as it:
        impatient = Endpoint(base_url=it.url, model="m", timeout_seconds=10)
        with pytest.raises(ChatError, match="answered 429"):
            ChatClient(impatient).ask(HELLO)
        with pytest.raises(ChatError, match=r"alone for another (500|49\d) s") as caught:
            ChatClient(impatient).ask(HELLO)
    assert caught.value.retryable
    assert len(it.requests) == 1


def ask_from_threads(url: str, threads: int, requests: int, **limits) -> list[str]:
    def ask(number: int) -> str:
        role = Endpoint(base_url=url, model=f"model-{number % 3}", **limits)
        return ChatClient(role).ask(Request(HELLO.messages, seed=number)).text

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(ask, range(requests)))


def test_threads_never_have_more_requests_under_way_than_allowed():
    with stand_in(Step(body=completion("hi"), delay=0.05)) as it:
        assert ask_from_threads(it.url, 8, 12, max_concurrent=2) == ["hi"] * 12
    assert it.most_under_way <= 2


def test_a_retry_after_holds_for_everybody():
    busy = Step(429, {"error": {"message": "slow"}}, {"retry-after": "1"})
    with stand_in(busy, Step(body=completion("hi"))) as it:
        assert ask_from_threads(it.url, 6, 6, max_concurrent=1) == ["hi"] * 6
        assert min(it.times[1:]) - it.times[0] >= 0.99
        assert len(it.times) == 7


def test_a_retry_after_as_a_date_holds_for_everybody_too():
    at = int(time.time()) + 3  # a date has whole seconds
    then = time.monotonic() + at - time.time()
    date = formatdate(at, usegmt=True)
    with stand_in(Step(429, {}, {"retry-after": date}), Step(body=completion("hi"))) as it:
        assert ask_from_threads(it.url, 4, 4, max_concurrent=1) == ["hi"] * 4
        assert min(it.times[1:]) >= then - 0.01


@pytest.mark.parametrize("limit", [{"requests_per_minute": 1}, {"tokens_per_minute": 150}])
def test_waiting_for_a_turn_can_be_cancelled_and_costs_no_time_limit(limit: dict):
    with stand_in(Step(body=completion("hi"))) as it:
        endpoint = Endpoint(base_url=it.url, model="m", max_tokens=50, **limit)
        ChatClient(endpoint).ask(HELLO)
        cancel = threading.Event()
        threading.Timer(0.6, cancel.set).start()
        with pytest.raises(ChatError) as caught:
            ChatClient(endpoint).ask(
                Request(HELLO.messages, timeout_seconds=0.3), unwanted=cancel.is_set
            )
    assert caught.value.code == "cancelled"
    assert len(it.requests) == 1
    with contextlib.closing(sqlite3.connect(turns.shared_file())) as rows:
        assert rows.execute("SELECT count(*) FROM turns WHERE state != 'over'").fetchone() == (0,)


# -- processes of one machine -----------------------------------------------------------------

ASK = r"""
import sys, threading
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError, Endpoint
from treewright.llm.wire import Message, Request
url, places, requests, wanted = sys.argv[1], *map(int, sys.argv[2:])
endpoint = Endpoint(base_url=url, model="m", max_concurrent=places, requests_per_minute=requests,
                    timeout_seconds=60)
done = threading.Event()
def ask():
    try:
        ChatClient(endpoint).ask(Request([Message("user", "hi")]), unwanted=done.is_set)
        sys.stdout.write("answered\n")
    except ChatError as error:
        sys.stdout.write(f"{error.code}\n")
threads = [threading.Thread(target=ask) for _ in range(wanted)]
for thread in threads: thread.start()
if sys.stdin.readline(): done.set()
for thread in threads: thread.join()
"""


class Processes:
    """Programs that ask, with a cache directory of their own for all of them."""

    def __init__(self, cache: Path) -> None:
        self.environment = {**os.environ, "TREEWRIGHT_CACHE": str(cache)}
        self.started: list[subprocess.Popen[str]] = []

    def ask(self, it: StandIn, *, places: int, requests: int, wanted: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", ASK, it.url, str(places), str(requests), str(wanted)]
        self.started.append(
            subprocess.Popen(
                command,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        return self.started[-1]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path / "cache")
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_processes_share_the_places(processes: Processes):
    with stand_in(Step(body=completion("hi"), delay=0.1), meeting=2) as it:
        asking = [processes.ask(it, places=2, requests=1000, wanted=5) for _ in range(2)]
        said = [process.communicate(timeout=120)[0].split() for process in asking]
    assert said == [["answered"] * 5] * 2
    assert len(it.requests) == 10
    assert it.most_under_way == 2


def test_processes_share_the_minute(processes: Processes):
    with stand_in(Step(body=completion("hi"))) as it:
        asking = [processes.ask(it, places=100, requests=5, wanted=4) for _ in range(2)]
        shared_file = Path(processes.environment["TREEWRIGHT_CACHE"]) / "llm" / "turns.sqlite"

        def all_have_asked() -> bool:
            if len(it.requests) < 5:
                return False
            with contextlib.closing(sqlite3.connect(shared_file, timeout=30)) as rows:
                query = "SELECT sum(state = 'over'), sum(state = 'waiting') FROM turns"
                return rows.execute(query).fetchone() == (5, 3)

        until(all_have_asked, 60, "five sent, three waiting")
        for process in asking:
            assert process.stdin is not None
            process.stdin.write("stop\n")
        said = [word for process in asking for word in process.communicate(timeout=60)[0].split()]
    assert sorted(said) == ["answered"] * 5 + ["cancelled"] * 3
    assert len(it.requests) == 5


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_holder_blocks_nobody(processes: Processes, how: signal.Signals):
    with stand_in(Step(delay=600), Step(body=completion("hi"))) as it:
        holder = processes.ask(it, places=1, requests=1000, wanted=3)
        until(lambda: len(it.requests) == 1, 60, "one asked, two wait behind it")
        holder.send_signal(how)
        holder.wait(timeout=120)
        began = time.monotonic()
        other = processes.ask(it, places=1, requests=1000, wanted=2)
        assert other.communicate(timeout=200)[0].split() == ["answered"] * 2
    assert time.monotonic() - began < 200, "far below the ten minutes of the holder"


# -- a file that cannot be shared -----------------------------------------------------------


@pytest.mark.parametrize("damage", ["text", "directory"])
def test_a_file_that_cannot_be_used_is_an_error_only_where_there_are_limits(damage: str):
    path = turns.shared_file()
    if damage == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"not a database, by any means" * 100)
    with stand_in(Step(body=completion("hi"))) as it:
        assert ChatClient(Endpoint(base_url=it.url, model="m")).ask(HELLO).text == "hi"
        limited = ChatClient(Endpoint(base_url=it.url, model="m", max_concurrent=1))
        with pytest.raises(ChatError, match="set TREEWRIGHT_CACHE"):
            limited.ask(HELLO)
    assert len(it.requests) == 1
