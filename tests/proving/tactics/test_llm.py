"""The language model's source, against a real HTTP server on loopback with canned answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from treewright.cli.prove_settings import parse_settings
from treewright.lean.session.answers import Hypothesis
from treewright.llm.endpoint import Endpoint
from treewright.llm.keys import key_for
from treewright.llm.usage import Usage, describe_usage
from treewright.proving.records import GoalView
from treewright.proving.settings import EndpointSettings
from treewright.proving.tactics.chat_model import LlmTactics, parse
from treewright.proving.tactics.core import CoreTactics
from treewright.proving.tactics.factory import build_source
from treewright.proving.tactics.source import AskingStopped, MergedSource, NoisySource, stop_when

GOAL = GoalView("p ∧ q", (Hypothesis("hp", "p"),))


class Server(ThreadingHTTPServer):
    """Answers every request with `answer` and keeps the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.answer: bytes = b""
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.held = threading.Event()
        self.held.set()

    def says(self, content: object) -> None:
        self.answer = json.dumps({"choices": [{"message": {"content": content}}]}).encode()


class Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append({"path": self.path, **json.loads(body)})
        self.server.keys.append(self.headers["Authorization"])
        self.server.held.wait(60)
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.held.set()
        running.shutdown()
        thread.join()


def source(server: Server, seed: int = 0, **settings: Any) -> LlmTactics:
    url = f"http://127.0.0.1:{server.server_port}/v1"
    return LlmTactics(Endpoint(base_url=url, model="tiny", **settings), seed)


def test_an_answer_becomes_candidates_ranked_by_place(server: Server) -> None:
    server.says("```lean\n1. constructor\n- `exact ⟨hp, sorry⟩`\nby simp\n* simp\n```\n")
    suggestions = source(server, seed=7, temperature=0.5).suggest([GOAL], 0)
    assert [c.tactic for c in suggestions.candidates] == ["constructor", "simp"]
    assert (suggestions.candidates[0].prior or 0) > (suggestions.candidates[1].prior or 0)
    (asked,) = server.asked
    assert asked["path"] == "/v1/chat/completions"
    assert (asked["seed"], asked["temperature"], asked["model"]) == (7, 0.5, "tiny")
    assert asked["messages"][1]["content"] == "hp : p\n⊢ p ∧ q"


def test_the_model_is_asked_once_for_each_goal(server: Server) -> None:
    server.says("simp")
    assert not source(server).suggest([GOAL], 1).candidates
    assert not server.asked


@pytest.mark.parametrize(
    ("status", "answer", "warning"),
    [
        (500, b"no", "500"),
        (200, b"not json", "else than a chat completion"),
        (200, b"[" * 200_000, "else than a chat completion"),
        (200, b'{"choices": []}', "else than a chat completion"),
        (200, b'{"choices": [{"message": {"content": null}}]}', "no tactic"),
    ],
    ids=["500", "not json", "200,000 brackets", "no choice", "no content"],
)
def test_a_bad_answer_is_a_warning_and_no_suggestion(
    server: Server, status: int, answer: bytes, warning: str
) -> None:
    server.status, server.answer = status, answer
    model = source(server)
    suggestions = model.suggest([GOAL], 0)
    assert not suggestions.candidates
    assert suggestions.complete
    assert len(model.warnings) == 1
    assert warning in model.warnings[0]


def test_a_model_that_does_not_answer_in_time(server: Server) -> None:
    server.held.clear()
    model = source(server, timeout_seconds=0.2)
    assert not model.suggest([GOAL], 0).candidates
    assert "did not answer in 0.2 s" in model.warnings[0]


def test_a_question_ends_when_the_search_does(server: Server) -> None:
    server.held.clear()
    waiting = source(server)
    model = NoisySource(MergedSource(waiting, CoreTactics()), seed=1)
    stop_when(model, lambda: bool(server.asked))
    with pytest.raises(AskingStopped):
        model.suggest([GOAL], 0)
    assert not waiting.warnings


def test_an_unreachable_model_gives_a_warning() -> None:
    model = LlmTactics(Endpoint(base_url="http://127.0.0.1:9", model="tiny"))
    assert not model.suggest([GOAL], 0).candidates
    assert model.warnings


def test_prose_is_cut_down_to_lines() -> None:
    assert parse("intro x\n\nintro x\n" + "a" * 400) == ["intro x"]


def test_a_key_goes_only_to_the_endpoint_it_was_configured_for(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret of another host")
    monkeypatch.setenv("OWN_KEY", "for this one")
    server.says("simp")
    url = f"http://127.0.0.1:{server.server_port}/v1"
    for flags in ({}, {"llm_key_env": "OWN_KEY"}):
        settings = parse_settings({"llm_url": url, "llm_model": "tiny", **flags})
        build_source(settings).suggest([GOAL], 0)
    assert server.keys == [None, "Bearer for this one"]
    public = EndpointSettings("https://api.openai.com/v1", "m")
    assert key_for(public.endpoint()) == "secret of another host"


def test_a_key_that_comes_back_is_in_no_tactic_and_no_warning(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_KEY", "sk-of-this-endpoint")
    model = source(server, api_key_env="OWN_KEY")
    server.says("exact sk-of-this-endpoint")
    assert [c.tactic for c in model.suggest([GOAL], 0).candidates] == ["exact [redacted]"]
    server.status, server.answer = 400, b"wrong: sk-of-this-endpoint"
    model.suggest([GOAL], 0)
    assert "wrong: [redacted]" in model.warnings[0]
    assert server.keys == ["Bearer sk-of-this-endpoint"] * 2


def test_the_usage_of_the_model_is_reported(server: Server) -> None:
    used = {"prompt_tokens": 1200, "completion_tokens": 30}
    choice = {"message": {"content": "simp"}}
    server.answer = json.dumps({"choices": [choice], "usage": used}).encode()
    spent: list[Usage] = []
    url = f"http://127.0.0.1:{server.server_port}/v1"
    settings = parse_settings({"llm_url": url, "llm_model": "tiny"})
    build_source(settings, spend=spent.append).suggest([GOAL], 0)
    assert spent == [Usage(1200, 30, unpriced_tokens=1230)]
    assert describe_usage(2, spent[0] + spent[0]) == (
        "2 answers of the model: 2,400 tokens in, 60 out; "
        "cost unknown: no price is known for 2,460 tokens"
    )
