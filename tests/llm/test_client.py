"""The chat client: a real small model for what works, a stand-in for what goes wrong."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from email.utils import formatdate

import pytest

from tests.llm.endpoints import Step, completion, stand_in
from treewright.kernel.errors import MissingExtra
from treewright.llm import chat
from treewright.llm import endpoint as endpoints
from treewright.llm.chat import JsonSchema, Message, Request
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError, Endpoint, describe
from treewright.llm.usage import Usage, priced

KEY = "sk-test-7f3a9c1e5b"
HELLO = Request([Message("user", "Say hello.")])


def client(url: str, **fields) -> ChatClient:
    return ChatClient(Endpoint(**{"base_url": url, "model": "m", "max_tokens": 12} | fields))


@pytest.mark.xdist_group("llm")
def test_a_real_model_answers_counts_and_repeats(model_url: str):
    prices = {"usd_per_million_prompt_tokens": 2.0, "usd_per_million_completion_tokens": 10.0}
    asked = client(model_url, temperature=0.8, **prices)
    one = asked.ask(Request(HELLO.messages, seed=11))
    assert one.text.strip()
    assert one.usage.prompt_tokens > 5
    assert 1 <= one.usage.completion_tokens <= 12
    expected = (one.usage.prompt_tokens * 2 + one.usage.completion_tokens * 10) / 1e6
    assert one.usage.cost_usd == pytest.approx(expected)
    assert asked.ask(Request(HELLO.messages, seed=11)).text == one.text


@pytest.mark.xdist_group("llm")
def test_a_real_model_is_cut_off_at_max_tokens(model_url: str):
    answer = client(model_url, max_tokens=3).ask(
        Request([Message("user", "Count from one to ninety.")])
    )
    assert answer.finish_reason == "length"
    assert answer.usage.completion_tokens == 3


@pytest.mark.parametrize("status", [429, 500, 503])
def test_passing_errors_are_retried(status: int):
    with stand_in(Step(status, {"error": {"message": "busy"}}), Step(body=completion("hi"))) as it:
        answer = client(it.url).ask(HELLO)
    assert (answer.text, answer.attempts, len(it.requests)) == ("hi", 2, 2)
    assert answer.usage == Usage(100, 10, 0.0, 110), "no price is known"


def test_a_thread_with_a_running_event_loop_can_ask():
    """As in a notebook, whose cells run below an event loop."""

    async def cell() -> str:
        return client(it.url).ask(HELLO).text

    with stand_in(Step(body=completion("hi"))) as it:
        assert asyncio.run(cell()) == "hi"


def test_an_endpoint_that_stays_away_is_told_once(caplog, monkeypatch):
    """Without the warning a wrong address would be silent for the ten minutes of a time limit."""
    monkeypatch.setattr("treewright.llm.client._FIRST_DELAY_SECONDS", 0.001)
    away = [Step(503, {"error": {"message": "busy"}})] * 5
    with stand_in(*away, Step(body=completion("hi"))) as it:
        assert client(it.url).ask(HELLO).attempts == 6
        (said,) = [record.getMessage() for record in caplog.records if record.name == "treewright"]
    assert "answered 503: busy; trying again for up to " in said
    caplog.clear()
    with stand_in(*away) as it, pytest.raises(ChatError):
        client(it.url).ask(Request(HELLO.messages, tries=4))
    assert not caplog.records, "who asks only a few times says so himself"


def test_a_dropped_connection_is_retried():
    with stand_in(Step(drop=True), Step(body=completion("hi"))) as it:
        assert client(it.url).ask(HELLO).attempts == 2


def test_retry_after_is_obeyed():
    with stand_in(Step(429, {}, {"retry-after": "1.2"}), Step(body=completion("hi"))) as it:
        client(it.url).ask(HELLO)
    assert it.times[1] - it.times[0] >= 1.2


def test_a_wait_longer_than_the_time_limit_is_not_begun():
    with stand_in(Step(429, {"error": {"message": "slow down"}}, {"retry-after": "600"})) as it:
        began = time.monotonic()
        with pytest.raises(ChatError, match="answered 429: slow down") as caught:
            client(it.url, timeout_seconds=200.0).ask(HELLO)
    assert time.monotonic() - began < 200
    assert caught.value.retryable
    assert caught.value.code == "llm_unavailable"


def test_both_forms_of_retry_after():
    assert chat.retry_after("3") == 3
    assert chat.retry_after("-1") == 0
    seconds = chat.retry_after(formatdate(time.time() + 100, usegmt=True))
    assert seconds is not None
    assert 50 <= seconds <= 101


@pytest.mark.parametrize("value", [None, "", "soon", "nan", "inf"])
def test_no_sensible_retry_after(value: str | None):
    assert chat.retry_after(value) is None


@pytest.mark.parametrize("status", [400, 401, 404])
def test_lasting_errors_are_not_retried(status: int):
    with (
        stand_in(Step(status, {"error": {"message": "no\nsecond line"}})) as it,
        pytest.raises(ChatError, match=f"m at {it.url} answered {status}: no(;|$)") as caught,
    ):
        client(it.url).ask(HELLO)
    assert len(it.requests) == 1
    assert not caught.value.retryable


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"choices": []}', b'{"choices": [{"message": 3}]}', b"\xff\xfe"]
)
def test_garbage_is_an_error(body: bytes):
    with (
        stand_in(Step(body=body)) as it,
        pytest.raises(ChatError, match="something else than a chat completion"),
    ):
        client(it.url).ask(HELLO)


def test_a_silent_endpoint_ends_at_the_time_limit():
    with stand_in(Step(delay=600, body=completion("late"))) as it:
        began = time.monotonic()
        with pytest.raises(ChatError, match=r"did not answer in 0\.5 s") as caught:
            client(it.url, timeout_seconds=0.5).ask(HELLO)
    assert time.monotonic() - began < 200
    assert caught.value.code == "llm_timeout"


def test_cancelling_does_not_wait_for_the_answer():
    cancel = threading.Event()
    with stand_in(Step(delay=600, body=completion("late"))) as it:
        threading.Timer(0.3, cancel.set).start()
        began = time.monotonic()
        with pytest.raises(ChatError) as caught:
            client(it.url).ask(HELLO, unwanted=cancel.is_set)
    assert time.monotonic() - began < 200
    assert caught.value.code == "cancelled"


def test_an_address_without_a_server():
    with pytest.raises(ChatError, match="cannot be reached") as caught:
        client("http://127.0.0.1:9", timeout_seconds=3.0).ask(HELLO)
    assert caught.value.retryable


def test_an_address_that_is_none():
    with pytest.raises(ChatError, match="is not an http"):
        client("model.example").ask(HELLO)


def test_models_that_refuse_parameters_are_asked_without_them():
    def refuse(name: str) -> Step:
        return Step(400, {"error": {"code": "unsupported_parameter", "param": name}})

    with stand_in(refuse("max_tokens"), refuse("temperature"), Step(body=completion("hi"))) as it:
        answer = client(it.url).ask(HELLO)
    assert answer.refused == ("max_tokens", "temperature")
    assert it.requests[0]["max_tokens"] == 12
    assert it.requests[-1]["max_completion_tokens"] == 12
    assert "temperature" not in it.requests[-1]


def test_a_refused_parameter_that_is_needed_is_an_error():
    refusal = Step(400, {"error": {"code": "unsupported_parameter", "param": "messages"}})
    with stand_in(refusal) as it, pytest.raises(ChatError):
        client(it.url).ask(HELLO)
    assert len(it.requests) == 1


def test_key_is_sent_in_the_header_and_nowhere_else(monkeypatch):
    monkeypatch.setenv("MY_MODEL_ACCESS", KEY)
    echo = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    with stand_in(Step(401, echo)) as it:
        asked = client(it.url, api_key_env="MY_MODEL_ACCESS")
        with pytest.raises(ChatError, match="set MY_MODEL_ACCESS") as caught:
            asked.ask(HELLO)
    assert it.authorizations == [f"Bearer {KEY}"]
    chain: BaseException | None = caught.value
    while chain is not None:
        assert KEY not in str(chain)
        assert KEY not in repr(chain)
        chain = chain.__cause__ or chain.__context__
    assert KEY not in repr(vars(asked))
    assert KEY not in str(it.requests)


def test_without_a_key_no_header_is_sent():
    with stand_in(Step(body=completion("hi"))) as it:
        client(it.url).ask(HELLO)
    assert it.authorizations == [None]


def test_a_key_that_is_named_but_not_set(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with stand_in(Step(body=completion("hi"))) as it:
        with pytest.raises(ChatError, match="NO_SUCH_KEY is not set"):
            client(it.url, api_key_env="NO_SUCH_KEY").ask(HELLO)
        assert it.requests == []


@pytest.mark.parametrize("key", ["sk-größe-secret", "sk-secret\nX-Evil: 1"])
def test_a_key_that_no_header_can_carry_is_not_quoted(key: str, monkeypatch):
    monkeypatch.setenv("ODD_KEY", key)
    with pytest.raises(ChatError, match="characters that no key has") as caught:
        client("http://127.0.0.1:9", api_key_env="ODD_KEY").ask(HELLO)
    assert "secret" not in repr(caught.value)


def test_text_that_is_not_unicode_is_sent_all_the_same():
    with stand_in(Step(body=completion("hi"))) as it:
        client(it.url).ask(Request([Message("user", "name \udcff.py")]))
    assert it.requests[0]["messages"][0]["content"] == "name ?.py"


def test_a_password_in_the_address_is_not_shown():
    shown = describe(Endpoint(base_url="https://me:hunter2@host.example/v1", model="m"))
    assert shown == "m at https://host.example/v1"


def test_missing_library_says_what_to_install(monkeypatch):
    monkeypatch.setattr(endpoints.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"treewright\[llm\]"):
        client("http://127.0.0.1:9").ask(HELLO)


def test_the_settings_of_a_request_are_sent():
    schema = JsonSchema("steps", {"type": "array"})
    with stand_in(Step(body=completion("hi"))) as it:
        asked = client(it.url)
        asked.ask(HELLO)
        asked.ask(Request(HELLO.messages, seed=3, temperature=0.0, max_tokens=5))
        asked.ask(Request(HELLO.messages, response_format="json"))
        asked.ask(Request(HELLO.messages, response_format=schema))
    plain, own, any_json, of_schema = it.requests
    assert (plain["temperature"], plain["max_tokens"]) == (0.2, 12)
    assert not {"seed", "response_format"} & plain.keys()
    assert (own["seed"], own["temperature"], own["max_tokens"]) == (3, 0.0, 5)
    assert any_json["response_format"] == {"type": "json_object"}
    assert of_schema["response_format"]["json_schema"] == {
        "name": "steps",
        "schema": {"type": "array"},
    }


def test_a_caller_can_bound_the_tries():
    with stand_in(Step(500, {"error": "no"})) as it, pytest.raises(ChatError, match="answered 500"):
        client(it.url).ask(Request(HELLO.messages, tries=2))
    assert len(it.requests) == 2


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_carries_the_key_nowhere(status: int, monkeypatch):
    monkeypatch.setenv("ITS_KEY", KEY)
    with stand_in(Step(body=completion("hi"))) as elsewhere:
        there = {"location": f"{elsewhere.url}/chat/completions"}
        with stand_in(Step(status, {}, there)) as it:
            with pytest.raises(ChatError, match="redirections are not followed"):
                client(it.url, api_key_env="ITS_KEY").ask(HELLO)
            assert it.authorizations == [f"Bearer {KEY}"]
    assert elsewhere.requests == []


@pytest.mark.parametrize("before", [150, 190, 195, 199])
def test_a_key_that_is_cut_in_two_is_not_shown_in_part(before: int, monkeypatch):
    monkeypatch.setenv("ITS_KEY", KEY)
    said = "x" * before + KEY + "y" * 300
    with (
        stand_in(Step(400, {"error": {"message": said}})) as it,
        pytest.raises(ChatError) as caught,
    ):
        client(it.url, api_key_env="ITS_KEY").ask(HELLO)
    assert KEY[:4] not in str(caught.value)


def test_a_key_that_an_answer_quotes_is_taken_out(monkeypatch):
    monkeypatch.setenv("ITS_KEY", KEY)
    with stand_in(Step(body=completion(f"my key is {KEY}", finish=KEY))) as it:
        answer = client(it.url, api_key_env="ITS_KEY").ask(HELLO)
    assert answer.text == "my key is [redacted]"
    assert KEY not in repr(answer)


def test_a_password_of_the_address_that_a_reply_quotes_is_taken_out(monkeypatch):
    monkeypatch.setenv("LLM_PASS", KEY)
    with stand_in(Step(body=completion(f"it is {KEY}")), Step(400, {"error": KEY})) as it:
        asked = client(it.url.replace("://", "://me:$LLM_PASS@"))
        assert asked.ask(HELLO).text == "it is [redacted]"
        with pytest.raises(ChatError) as caught:
            asked.ask(HELLO)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        {"prompt_tokens": -6_000_000, "completion_tokens": 5},
        {"prompt_tokens": 10**15, "completion_tokens": 5},
        {"prompt_tokens": 10**30, "completion_tokens": 5},
        {"prompt_tokens": True, "completion_tokens": 5},
        {"prompt_tokens": "many", "completion_tokens": 5},
        {"completion_tokens": 5},
    ],
)
def test_usage_that_cannot_be_true_is_not_believed_and_loses_no_answer(said: dict):
    price = {"usd_per_million_prompt_tokens": 1.0}
    with stand_in(Step(body=completion("hi", usage=said))) as it:
        answer = client(it.url, **price).ask(HELLO)
    assert answer.text == "hi"
    assert answer.usage == Usage(0, 5, 0.0, 5)


@pytest.mark.parametrize("count", ["1e999", "9" * 5000, "-1e999", "[" * 50 + "]" * 50])
def test_a_count_that_no_number_holds_loses_neither_the_answer_nor_the_other_count(count: str):
    whole = json.dumps(completion("hi", usage={"prompt_tokens": 0, "completion_tokens": 5}))
    payload = whole.replace('"prompt_tokens": 0', f'"prompt_tokens": {count}').encode()
    found = chat.completion_of(payload)
    assert found is not None
    assert found[0].message.content == "hi"
    assert priced(Endpoint(base_url="http://x", model="m"), *found[1].counts()).tokens == 5


@pytest.mark.parametrize("said", [None, [], "free", 3])
def test_usage_that_is_not_even_a_table(said: object):
    with stand_in(Step(body=completion("hi", usage=said))) as it:
        assert client(it.url).ask(HELLO).usage == Usage()


def test_an_answer_without_an_end_is_an_error():
    with (
        stand_in(Step(body=b"x" * (17 << 20))) as it,
        pytest.raises(ChatError, match="more than 16,777,216 bytes"),
    ):
        client(it.url).ask(HELLO)


def test_the_error_of_an_earlier_try_is_reported_when_the_time_is_up():
    with (
        stand_in(Step(503, {"error": "overloaded"}), Step(delay=30)) as it,
        pytest.raises(ChatError, match="503: overloaded") as caught,
    ):
        client(it.url, timeout_seconds=3.0).ask(HELLO)
    assert caught.value.code == "llm_unavailable"
