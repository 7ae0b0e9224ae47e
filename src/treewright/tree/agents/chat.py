"""A client for OpenAI-compatible chat endpoints: one question, one answer.

Retries what can pass (429, 5xx, broken connections) within the endpoint's time limit,
and nothing else; every try waits for its turn (`rate_limit`), which is not counted. The
key is read from the environment for each call and is in the
request's header only: not in this object, not in any message, not in any file.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from treewright.kernel import http_client, jsontext
from treewright.tree.agents import chat_wire as wire
from treewright.tree.agents import rate_limit
from treewright.tree.agents.endpoint import ChatError, api_key, check_installed, describe
from treewright.tree.agents.transcript import redact, without_key
from treewright.tree.config import EndpointConfig
from treewright.tree.records.model import Usage

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    usage: Usage
    finish_reason: str
    attempts: int
    refused: tuple[str, ...] = ()
    """Parameters that the model did not take and was asked without."""


class _Passing(Exception):
    """A failure that may be gone next time."""

    def __init__(self, error: ChatError, delay: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.delay = delay


class _Refused(Exception):
    """The model does not take a parameter."""

    def __init__(self, error: ChatError, parameter: str) -> None:
        super().__init__(error.message)
        self.error = error
        self.parameter = parameter


class ChatClient:
    """Asks one endpoint. Holds no connection and no key between calls."""

    def __init__(self, endpoint: EndpointConfig) -> None:
        self._endpoint = endpoint
        self._limiter = rate_limit.limiter_of(endpoint)

    def ask(
        self,
        messages: Sequence[Message],
        *,
        seed: int = 0,
        cancel: threading.Event | None = None,
    ) -> Answer:
        """Blocks until there is an answer; a ChatError says why there is none."""
        check_installed()
        return asyncio.run(self._ask(messages, seed, cancel))

    async def _ask(
        self, messages: Sequence[Message], seed: int, cancel: threading.Event | None
    ) -> Answer:
        endpoint = self._endpoint
        unwanted = cancel.is_set if cancel is not None else lambda: False
        deadline = time.monotonic() + endpoint.timeout_seconds
        body = {
            "model": endpoint.model,
            "messages": [
                {"role": item.role, "content": _sendable(item.content)} for item in messages
            ],
            "temperature": endpoint.temperature,
            "max_tokens": endpoint.max_tokens,
            "seed": seed,
        }
        jitter = random.Random(f"{seed}:{endpoint.model}")  # noqa: S311
        attempt = 1
        refused: list[str] = []
        while True:
            try:
                with self._limiter.turn(cancel, endpoint.timeout_seconds) as waited:
                    deadline += waited
                    left = deadline - time.monotonic()
                    payload = await self._post(body, left, unwanted)
                return self._answer(payload, attempt, tuple(refused))
            except rate_limit.HoldTooLong as hold:
                raise self._error("llm_unavailable", str(hold), True) from None
            except (rate_limit.Cancelled, http_client.Cancelled):
                raise _cancelled() from None
            except _Refused as refusal:
                _do_without(body, refusal)
                refused.append(refusal.parameter)
                continue
            except TimeoutError:
                raise self._error("llm_timeout", "did not answer in time", True) from None
            except _Passing as passing:
                delay = passing.delay
                if delay is None:
                    delay = _FIRST_DELAY_SECONDS * 2 ** (attempt - 1)
                    delay = min(delay, _LONGEST_DELAY_SECONDS) * (0.75 + jitter.random() / 2)
                if time.monotonic() + delay >= deadline:
                    raise passing.error from None
            try:
                await http_client.within(asyncio.sleep(delay), delay + 1, unwanted)
            except http_client.Cancelled:
                raise _cancelled() from None
            attempt += 1

    async def _post(
        self, body: dict[str, Any], seconds: float, unwanted: http_client.Unwanted
    ) -> bytes:
        url = self._endpoint.base_url.rstrip("/") + "/chat/completions"
        try:
            reply = await http_client.post(
                url, body, headers=self._headers(), seconds=seconds, unwanted=unwanted
            )
        except http_client.NoReply as none:
            if none.kind == "unreachable":
                raise _Passing(self._error("llm_unreachable", str(none), True)) from None
            raise self._error("llm_failed", str(none)) from None
        if reply.ok:
            return reply.body
        said, refused = wire.error_of(reply.body)
        reason = redact(said, self._endpoint.api_key_env)
        what = f"answered {reply.status}" + (f": {reason}" if reason else "")
        if reply.status in wire.RETRIED:
            error = self._error("llm_unavailable", what, True)
            delay = wire.retry_after(reply.headers.get("retry-after"))
            if delay is not None:
                self._limiter.hold(delay)
            raise _Passing(error, delay)
        if reply.status in (401, 402, 403):
            what += (
                f"; set {self._endpoint.api_key_env}"
                if self._endpoint.api_key_env
                else ("; set `api_key_env` of the endpoint")
            )
            raise self._error("llm_denied", what)
        if refused:
            raise _Refused(self._error("llm_failed", what), refused)
        raise self._error("llm_failed", what)

    def _headers(self) -> dict[str, str]:
        key = api_key(self._endpoint)
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _answer(self, payload: bytes, attempts: int, refused: tuple[str, ...]) -> Answer:
        try:
            completion = jsontext.decode(payload, type=wire.Completion)
            choice = completion.choices[0]
        except (msgspec.DecodeError, IndexError):
            raise self._error(
                "llm_failed", "answered with something else than a chat completion"
            ) from None
        return Answer(
            text=without_key(choice.message.content or "", self._endpoint.api_key_env),
            usage=wire.priced(self._endpoint, completion.usage),
            finish_reason=choice.finish_reason or "",
            attempts=attempts,
            refused=refused,
        )

    def _error(self, code: str, what: str, retryable: bool = False) -> ChatError:
        return ChatError(code, f"{describe(self._endpoint)} {what}", retryable=retryable)


def _cancelled() -> ChatError:
    return ChatError("cancelled", "cancelled while waiting for a model", retryable=True)


def _do_without(body: dict[str, Any], refusal: _Refused) -> None:
    """Newer models have another name for the token limit, and refuse some parameters."""
    name = refusal.parameter
    if name == "max_tokens" and name in body:
        body["max_completion_tokens"] = body.pop(name)
    elif name in wire.OPTIONAL_PARAMETERS and name in body:
        del body[name]
    else:
        raise refusal.error


def _sendable(text: str) -> str:
    """File names that are not UTF-8 cannot be sent as they are."""
    return text.encode("utf-8", "replace").decode("utf-8")
