"""The queue of requests: its arithmetic for any history, and threads at a real HTTP server."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.llm.endpoints import Step, completion, stand_in
from treewright.llm.chat import Message, Request
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError, Endpoint
from treewright.llm.limits import MINUTE, Limits, Load, wait_seconds
from treewright.llm.request_queue import LONGEST_PAUSE_SECONDS, RequestQueue, Ticket, queue_for

HELLO = Request([Message("user", "Say hello.")])
STEPS = st.one_of(
    st.tuples(st.just("advance"), st.floats(0, 40)),
    st.tuples(st.just("enter"), st.just(0.0)),
    st.tuples(st.just("send"), st.integers(0, 9)),
    st.tuples(st.just("finish"), st.integers(0, 9)),
    st.tuples(st.just("pause"), st.floats(0, 90)),
)
LIMIT = st.none() | st.integers(1, 4)
TOKENS = 10
"""The tokens of each request in the histories below."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def queue_with(limits: Limits, clock: Clock | None = None) -> RequestQueue:
    queue = RequestQueue(clock or Clock())
    queue.restrict(limits)
    return queue


@settings(max_examples=200)
@given(LIMIT, LIMIT, LIMIT, st.lists(STEPS, max_size=60))
def test_no_history_exceeds_a_limit(concurrent, requests, tens, steps):
    clock = Clock()
    queue = queue_with(Limits(concurrent, requests, tens and tens * TOKENS), clock)
    waiting: list[Ticket] = []
    under_way: list[Ticket] = []
    sent: list[float] = []
    paused_until = 0.0
    for step, amount in steps:
        if step == "advance":
            clock.now += amount
        elif step == "pause":
            paused_until = max(paused_until, clock.now + amount)
            queue.pause(amount)
        elif step == "enter":
            waiting.append(queue.enter(TOKENS))
        elif step == "finish" and under_way:
            queue.finish(under_way.pop(int(amount) % len(under_way)))
        elif step == "send" and waiting:
            ticket = waiting[int(amount) % len(waiting)]
            seconds = queue.try_send(ticket)
            if seconds == 0:
                waiting.remove(ticket)
                under_way.append(ticket)
                sent.append(clock.now)
                assert clock.now >= paused_until
            else:
                assert seconds is None or seconds > 0
        assert concurrent is None or len(under_way) <= concurrent
    most = min((limit for limit in (requests, tens) if limit is not None), default=None)
    if most is not None:
        for first, last in zip(sent, sent[most:], strict=False):
            assert last - first >= MINUTE - 1e-6, "more than allowed within a minute"


@given(st.integers(1, 5), st.integers(1, 40))
def test_a_request_that_waited_as_long_as_told_may_be_sent(allowed, wanted):
    now = 0.0
    sent: list[tuple[float, int]] = []
    for _ in range(wanted):
        seconds = wait_seconds(Limits(requests=allowed), Load(sent=sent[-allowed:]), now)
        assert seconds is not None
        now += seconds
        again = wait_seconds(Limits(requests=allowed), Load(sent=sent[-allowed:]), now)
        assert again is not None
        assert again < 1e-6, "the rest is below the resolution of a float"
        sent.append((now, 0))
    assert now <= (wanted - 1) // allowed * MINUTE + 1


def test_a_request_above_the_token_limit_is_sent_when_no_other_counts():
    limits, now = Limits(tokens=100), 50.0
    two = [(20.0, 60), (30.0, 30)]
    assert wait_seconds(limits, Load(), now, tokens=500) == 0
    assert wait_seconds(limits, Load(sent=[(20.0, 1)]), now, tokens=500) == pytest.approx(30)
    assert wait_seconds(limits, Load(sent=two), now, tokens=50) == pytest.approx(30)
    assert wait_seconds(limits, Load(sent=two), now, tokens=10) == 0


def test_the_true_tokens_of_an_answer_replace_the_estimate():
    queue = queue_with(Limits(tokens=100))
    first = queue.enter(100)
    assert queue.try_send(first) == 0
    queue.finish(first, tokens=20)
    assert queue.try_send(queue.enter(80)) == 0


def test_requests_are_sent_in_the_order_of_their_arrival():
    queue = queue_with(Limits(concurrent=1))
    first, second = queue.enter(1), queue.enter(1)
    assert queue.try_send(second) is None, "the other request arrived earlier"
    assert queue.try_send(first) == 0
    queue.finish(first)
    assert queue.try_send(second) == 0


def test_of_two_limits_of_one_endpoint_the_smaller_holds():
    queue = queue_with(Limits(2, 10))
    queue.restrict(Limits(None, 20))
    assert [queue.try_send(queue.enter(1)) for _ in range(3)] == [0, 0, None]


def test_an_endpoint_has_one_queue_for_all_its_models(monkeypatch):
    def queue(**fields) -> RequestQueue:
        return queue_for(Endpoint(**{"base_url": "http://h/v1", "model": "m"} | fields))

    assert queue() is queue(base_url="http://h/v1/", model="other")
    assert queue() is not queue(api_key_env="OTHER_KEY")
    assert queue() is not queue(base_url="http://other/v1")
    monkeypatch.setenv("TREEWRIGHT_LLM_KEYS", "http://h=OTHER_KEY")
    assert queue() is queue(api_key_env="OTHER_KEY"), "both ways of naming the key are the same"


def test_no_endpoint_can_close_itself_for_longer_than_an_hour():
    queue = queue_with(Limits())
    queue.pause(1e12)
    assert queue.try_send(queue.enter(1)) == LONGEST_PAUSE_SECONDS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_queues_of_its_own():
    endpoint = Endpoint(base_url="http://h/v1", model="m", max_concurrent=1)
    queue = queue_for(endpoint)
    assert queue.try_send(queue.enter(1)) == 0
    child = os.fork()
    if child == 0:
        own = queue_for(endpoint)
        os._exit(0 if own.try_send(own.enter(1)) == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert queue.try_send(queue.enter(1)) is None


def test_a_pause_longer_than_the_time_limit_is_an_error_at_once():
    with stand_in(Step(429, {}, {"retry-after": "500"}), Step(body=completion("hi"))) as it:
        impatient = Endpoint(base_url=it.url, model="m", timeout_seconds=10)
        with pytest.raises(ChatError, match="answered 429"):
            ChatClient(impatient).ask(HELLO)
        with pytest.raises(ChatError, match=r"no requests for another (500|49\d) s") as caught:
            ChatClient(impatient).ask(HELLO)
    assert caught.value.retryable
    assert len(it.requests) == 1


def ask_from_threads(url: str, threads: int, requests: int, **limits) -> list[str]:
    def ask(number: int) -> str:
        endpoint = Endpoint(base_url=url, model=f"model-{number % 3}", **limits)
        return ChatClient(endpoint).ask(Request(HELLO.messages, seed=number)).text

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(ask, range(requests)))


def test_threads_never_have_more_requests_under_way_than_allowed():
    with stand_in(Step(body=completion("hi"), delay=0.05), meeting=2) as it:
        assert ask_from_threads(it.url, 8, 12, max_concurrent=2) == ["hi"] * 12
    assert it.most_under_way == 2


def test_a_retry_after_stops_all_threads():
    busy = Step(429, {"error": {"message": "slow"}}, {"retry-after": "1"})
    with stand_in(busy, Step(body=completion("hi"))) as it:
        assert ask_from_threads(it.url, 6, 6, max_concurrent=1) == ["hi"] * 6
        assert min(it.times[1:]) - it.times[0] >= 0.99
        assert len(it.times) == 7


def test_a_retry_after_with_a_date_stops_all_threads():
    at = int(time.time()) + 3  # a date has whole seconds
    then = time.monotonic() + at - time.time()
    date = formatdate(at, usegmt=True)
    with stand_in(Step(429, {}, {"retry-after": date}), Step(body=completion("hi"))) as it:
        assert ask_from_threads(it.url, 4, 4, max_concurrent=1) == ["hi"] * 4
        assert min(it.times[1:]) >= then - 0.01


@pytest.mark.parametrize("limit", [{"requests_per_minute": 1}, {"tokens_per_minute": 150}])
def test_a_wait_in_the_queue_can_be_cancelled_and_costs_no_time_limit(limit: dict):
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
    assert not queue_for(endpoint)._waiting
