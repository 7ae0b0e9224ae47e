"""Which key goes where, for every way to give one, and that it goes nowhere else."""

from __future__ import annotations

import pytest

from tests.llm.endpoints import Step, completion, stand_in
from treewright.kernel.errors import UsageError
from treewright.llm import keys
from treewright.llm.chat import Message, Request
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError, Endpoint, address, origin, require_no_password

LIST = "TREEWRIGHT_LLM_KEYS"


def at(url: str, name: str | None = None) -> Endpoint:
    return Endpoint(base_url=url, model="m", api_key_env=name)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "public-key")
    monkeypatch.setenv("OWN_KEY", "own-key")
    monkeypatch.setenv("TEAM_KEY", "team-key")


def test_the_endpoints_own_setting_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIST, "https://llm.example=TEAM_KEY https://api.openai.com=TEAM_KEY")
    assert keys.key_for(at("https://llm.example/v1", "OWN_KEY")) == "own-key"
    assert keys.key_for(at("https://llm.example/v1")) == "team-key"
    assert keys.key_for(at("https://api.openai.com/v1")) == "team-key"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "https://api.openai.com",
        "https://API.openai.com:443/v1/",
    ],
)
def test_the_public_endpoint_gets_the_public_key(url: str) -> None:
    assert keys.key_for(at(url)) == "public-key"


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com.evil.example/v1",
        "https://api.openai.com@evil.example/v1",
        "https://evil.example/https://api.openai.com/v1",
        "https://api.openai.com\\@evil.example/v1",
        "https://evil.example\\@api.openai.com/v1",
        "https://api.openai.com\t.evil.example/v1",
        "https://api.openai.com:@evil.example/v1",
        "https://api.openai.com:99999999/v1",
        "https://api.openai.com:0443/v1",
        "https://[api.openai.com]/v1",
        "https://user:word@api.openai.com/v1",
        "//api.openai.com/v1",
        "api.openai.com",
        "file://api.openai.com/v1",
        "https://аpi.openai.com/v1",
        "",
    ],
)
def test_no_other_address_gets_the_key(url: str) -> None:
    endpoint = Endpoint(base_url=url, model="m")
    assert keys.key_for(endpoint) is None


def test_an_entry_is_for_its_address_and_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(LIST, "http://gate.example:8080/a=OWN_KEY http://gate.example:8080=TEAM_KEY")
    for url, key in [
        ("http://gate.example:8080/a/v1", "own-key"),
        ("http://gate.example:8080/a", "own-key"),
        ("http://gate.example:8080/ab/v1", "team-key"),
        ("http://gate.example:8080/v1", "team-key"),
        ("http://gate.example:8080/a/../b/v1", None),
        ("http://gate.example/v1", None),
        ("https://gate.example:8080/v1", None),
    ]:
        assert keys.key_for(at(url)) == key, url


@pytest.mark.parametrize(
    "text", ["sk-secret", "https://h", "https://h=sk-secret", "h=OWN_KEY", "https://h= OWN_KEY"]
)
def test_an_entry_that_cannot_be_read_is_an_error_that_quotes_nothing(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIST, text)
    with pytest.raises(ChatError, match="entry 1 of TREEWRIGHT_LLM_KEYS") as caught:
        keys.key_for(at("https://h/v1"))
    assert "secret" not in str(caught.value)
    assert caught.value.code == "llm_no_key"


def test_a_variable_that_is_named_has_to_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OWN_KEY", "  ")
    assert keys.key_for(at("https://api.openai.com/v1")) is None, "nobody named it"
    monkeypatch.setenv(LIST, "https://h=OWN_KEY")
    for endpoint in (at("https://h/v1"), at("https://other/v1", "OWN_KEY")):
        with pytest.raises(ChatError, match="OWN_KEY is not set"):
            keys.key_for(endpoint)


@pytest.mark.parametrize(
    "key", ["sk-live-1234", "my_key", "gsk_1234abcd", "https://h/secret", "a b"]
)
def test_a_key_in_the_place_of_its_variables_name_is_not_told(key: str) -> None:
    with pytest.raises(ChatError, match="of the name that was given holds it") as caught:
        keys.key_for(at("https://other/v1", key))
    assert key not in str(caught.value)
    assert caught.value.code == "llm_no_key"


def test_a_variable_may_have_any_name_if_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("my.key", "value")
    assert keys.key_for(at("https://other/v1", "my.key")) == "value"


def test_two_servers_get_each_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    hello = Request([Message("user", "hi")])
    with stand_in(Step(body=completion("1"))) as one, stand_in(Step(body=completion("2"))) as two:
        monkeypatch.setenv(LIST, f"{one.url}=OWN_KEY")
        for server in (one, two):
            ChatClient(at(server.url)).ask(hello)
    assert one.authorizations == ["Bearer own-key"]
    assert two.authorizations == [None]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://[::1]:8080/v1", ("http", "[::1]", 8080)),
        ("http://[::1]/v1", ("http", "[::1]", 80)),
        ("HTTPS://Host.Example/v1", ("https", "host.example", 443)),
        ("http://h:0/v1", ("http", "h", 0)),
        ("http://h:/v1", None),
        ("http://", None),
    ],
)
def test_origins(url: str, expected: tuple[str, str, int] | None) -> None:
    assert origin(url) == expected


def test_a_password_in_an_address_is_a_variable(monkeypatch) -> None:
    monkeypatch.setenv("PROXY_PASSWORD", "a b@c")
    require_no_password("https://me:$PROXY_PASSWORD@models.example/v1")
    require_no_password("https://models.example:8443/v1?at=x@y:z")
    for url in ("https://me:secret@models.example/v1", "http://:x@h", "HTTP://u:p@w@h/v1"):
        with pytest.raises(UsageError, match="would be recorded"):
            require_no_password(url)
    endpoint = Endpoint(base_url="https://me:$PROXY_PASSWORD@models.example/v1", model="m")
    assert address(endpoint) == "https://me:a%20b%40c@models.example/v1/chat/completions"
    monkeypatch.delenv("PROXY_PASSWORD")
    with pytest.raises(ChatError, match="PROXY_PASSWORD is not set"):
        address(endpoint)
