"""Turns at an endpoint: the bucket's arithmetic for any history, and real threads at a real
HTTP server."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tree.agents.endpoints import Step, completion, stand_in
from treewright.tree.agents.chat import ChatClient, Message
from treewright.tree.agents.endpoint import ChatError
from treewright.tree.agents.rate_limit import (
    MINUTE,
    Bucket,
    Cancelled,
    HoldTooLong,
    Limiter,
    limiter_of,
)
from treewright.tree.config import EndpointConfig

HELLO = [Message("user", "Say hello.")]
STEPS = st.one_of(
    st.tuples(st.just("advance"), st.floats(0, 40)),
    st.tuples(st.just("take"), st.just(0.0)),
    st.tuples(st.just("back"), st.just(0.0)),
    st.tuples(st.just("hold"), st.floats(0, 90)),
)


@given(st.none() | st.integers(1, 4), st.none() | st.integers(1, 6), st.lists(STEPS, max_size=120))
def test_no_history_exceeds_a_limit(places, tokens, steps):
    bucket = Bucket(places, tokens)
    now, under_way, held_until = 0.0, 0, 0.0
    admitted: list[float] = []
    for what, amount in steps:
        if what == "advance":
            now += amount
        elif what == "hold":
            held_until = max(held_until, now + amount)
            bucket.hold(now + amount)
        elif what == "back" and under_way:
            under_way -= 1
            bucket.give_back()
        elif what == "take":
            answer = bucket.take(now)
            if answer == 0:
                under_way += 1
                admitted.append(now)
                assert now >= held_until
            elif answer is None:
                assert places is not None
                assert under_way == places
            else:
                assert answer > 0
    assert places is None or under_way <= places
    if tokens is not None:
        for first, last in zip(admitted, admitted[tokens:], strict=False):
            assert last - first >= MINUTE - 1e-6, "more than allowed within a minute"


@given(st.integers(1, 5), st.integers(1, 40))
def test_whoever_waits_as_told_is_never_sent_away_twice(tokens, wanted):
    bucket, now = Bucket(None, tokens), 0.0
    for _ in range(wanted):
        wait = bucket.take(now)
        assert wait is not None
        if wait:
            now += wait
            again = bucket.take(now)
            assert again is not None
            assert again < 1e-6, "only by what a float cannot hold"
            if again:
                now += 1e-5
                assert bucket.take(now) == 0
    assert now <= (wanted - 1) // tokens * MINUTE + 1


def test_the_stricter_of_two_limits_holds_for_both_users():
    bucket = Bucket(None, 10)
    bucket.tighten(2, 20)
    assert [bucket.take(0), bucket.take(0), bucket.take(0)] == [0, 0, None]


def test_one_endpoint_is_one_limiter_whatever_the_model():
    def of(**fields):
        return limiter_of(EndpointConfig(**{"base_url": "http://h/v1", "model": "m"} | fields))

    assert of() is of(base_url="http://h/v1/", model="other")
    assert of() is not of(api_key_env="OTHER_KEY")
    assert of() is not of(base_url="http://other/v1")


def test_a_cancelled_waiter_leaves_the_queue_to_the_others():
    limiter, cancel, waiting = Limiter(), threading.Event(), threading.Event()
    limiter.tighten(1, None)

    def give_up() -> None:
        waiting.set()
        with limiter.turn(cancel):
            raise AssertionError

    with ThreadPoolExecutor(2) as pool:
        with limiter.turn():
            gone = pool.submit(give_up)
            waiting.wait()
            cancel.set()
            with pytest.raises(Cancelled):
                gone.result(timeout=10)
        with limiter.turn(threading.Event()):
            pass


def test_a_hold_longer_than_ones_patience_is_not_waited_for():
    limiter = Limiter()
    limiter.hold(500)
    with pytest.raises(HoldTooLong, match="another 500 s"), limiter.turn(patience=10):
        pass


def ask_from_threads(url: str, threads: int, requests: int, **limits) -> list[str]:
    def ask(number: int) -> str:
        role = EndpointConfig(base_url=url, model=f"model-{number % 3}", **limits)
        return ChatClient(role).ask(HELLO, seed=number).text

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(ask, range(requests)))


def test_threads_never_have_more_requests_under_way_than_allowed():
    with stand_in(Step(body=completion("hi"), delay=0.05)) as it:
        assert ask_from_threads(it.url, 8, 12, max_concurrent=2) == ["hi"] * 12
    spans = sorted(it.times)
    for first, third in zip(spans, spans[2:], strict=False):
        assert third - first >= 0.045, "three within the time that one takes"


def test_a_retry_after_holds_for_everybody():
    busy = Step(429, {"error": {"message": "slow"}}, {"retry-after": "1"})
    with stand_in(busy, Step(body=completion("hi"))) as it:
        limits = {"max_concurrent": 1}
        assert ask_from_threads(it.url, 6, 6, **limits) == ["hi"] * 6
        assert min(it.times[1:]) - it.times[0] >= 0.99
        assert len(it.times) == 7


def test_a_retry_after_as_a_date_holds_for_everybody_too():
    date = formatdate(time.time() + 3, usegmt=True)
    with stand_in(Step(429, {}, {"retry-after": date}), Step(body=completion("hi"))) as it:
        assert ask_from_threads(it.url, 4, 4, max_concurrent=1) == ["hi"] * 4
        assert min(it.times[1:]) - it.times[0] >= 1


def test_waiting_for_a_turn_can_be_cancelled_and_costs_no_time_limit():
    with stand_in(Step(body=completion("hi"))) as it:
        endpoint = EndpointConfig(
            base_url=it.url, model="m", requests_per_minute=1, timeout_seconds=0.3
        )
        ChatClient(endpoint).ask(HELLO)
        cancel = threading.Event()
        timer = threading.Timer(0.6, cancel.set)
        timer.start()
        with pytest.raises(ChatError) as caught:
            ChatClient(endpoint).ask(HELLO, cancel=cancel)
        timer.join()
    assert caught.value.code == "cancelled"
    assert len(it.requests) == 1
