"""The chat client of every engine: one question, one answer.

Retries what can pass (429, 5xx, broken connections) within the time limit, and nothing else;
every try waits for its turn (`turns`), which is not counted. The key is read from the environment
for each call and is in the request's header only: not in this object, not in any message, not in
any file. Redirections are not followed, so that no other host sees it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from treewright.kernel import http_client
from treewright.kernel.http_client import Unwanted
from treewright.llm import keys, usage, wire
from treewright.llm.endpoint import ChatError, Endpoint, address, check_installed, describe
from treewright.llm.redaction import redact, without_keys
from treewright.llm.shared_turns import Unusable
from treewright.llm.thinking import without_thoughts
from treewright.llm.turns import HoldTooLong, Queue
from treewright.llm.wire import Answer, Request

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 30.0
_SAID_AFTER_TRIES = 3
_log = logging.getLogger("treewright")

Waiting = Callable[[], AbstractContextManager[Any]]
"""Surrounds the time in which a question only waits for its turn."""


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

    def __init__(self, endpoint: Endpoint) -> None:
        check_installed()
        self.endpoint = endpoint
        self._queue = Queue(endpoint)

    def ask(self, request: Request, *, unwanted: Unwanted = lambda: False) -> Answer:
        """Blocks until there is an answer; a ChatError says why there is none."""
        return asyncio.run(self.ask_async(request, unwanted=unwanted))

    async def ask_async(
        self,
        request: Request,
        *,
        unwanted: Unwanted = lambda: False,
        waiting: Waiting = contextlib.nullcontext,
    ) -> Answer:
        keys.key_for(self.endpoint)  # one that is missing is no reason to queue
        limit = request.timeout_seconds or self.endpoint.timeout_seconds
        deadline = time.monotonic() + limit
        body = wire.body_of(self.endpoint, request)
        tokens = wire.estimated_tokens(self.endpoint, request)
        jitter = random.Random(f"{request.seed}:{self.endpoint.model}")  # noqa: S311
        attempt = 1
        refused: list[str] = []
        last: ChatError | None = None
        while True:
            spent: int | None = None
            try:
                left = deadline - time.monotonic()
                with waiting():
                    turn = await self._queue.begin(tokens, left, limit, unwanted)
                try:
                    deadline += turn.waited_seconds
                    payload = await self._post(body, deadline - time.monotonic(), unwanted)
                    answer = self._answer(payload, attempt, tuple(refused))
                    spent = answer.usage.tokens or None
                    return answer
                finally:
                    self._queue.end(turn, spent)
            except HoldTooLong as hold:
                raise self._error("llm_unavailable", str(hold), True) from None
            except Unusable as unusable:
                raise self._error("llm_failed", f"has limits, which {unusable}") from None
            except http_client.Cancelled:
                raise _cancelled(last) from None
            except _Refused as refusal:
                _do_without(body, refusal)
                refused.append(refusal.parameter)
                continue
            except TimeoutError:
                what = f"did not answer in {limit:g} s"
                # The last try had only what the others left: what these met says more.
                raise last or self._error("llm_timeout", what, True) from None
            except _Passing as passing:
                last = passing.error
                delay = passing.delay
                if delay is None:
                    delay = min(_FIRST_DELAY_SECONDS * 2 ** (attempt - 1), _LONGEST_DELAY_SECONDS)
                    delay *= 0.75 + jitter.random() / 2
                out_of_tries = request.tries is not None and attempt >= request.tries
                if out_of_tries or time.monotonic() + delay >= deadline:
                    raise passing.error from None
                if request.tries is None and attempt == _SAID_AFTER_TRIES:
                    left = deadline - time.monotonic()
                    _log.warning("%s; trying again for up to %.0f s", last.message, left)
            try:
                await http_client.within(asyncio.sleep(delay), math.inf, unwanted)
            except http_client.Cancelled:
                raise _cancelled(last) from None
            attempt += 1

    async def _post(self, body: dict[str, Any], seconds: float, unwanted: Unwanted) -> bytes:
        key = keys.key_for(self.endpoint)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            reply = await http_client.post(
                address(self.endpoint), body, headers=headers, seconds=seconds, unwanted=unwanted
            )
        except http_client.NoReply as none:
            if none.kind == "unreachable":
                raise _Passing(self._error("llm_unreachable", str(none), True)) from None
            raise self._error("llm_failed", str(none)) from None
        if reply.ok:
            return reply.body
        raise self._failure(reply)

    def _failure(self, reply: http_client.Reply) -> Exception:
        """What a reply that is no answer means."""
        variable = keys.name_for(self.endpoint)
        said, refused = wire.error_of(reply.body)
        reason = wire.first_line(redact(said, *keys.secrets_for(self.endpoint)))
        what = f"answered {reply.status}" + (f": {reason}" if reason else "")
        if reply.status in wire.RETRIED:
            delay = wire.retry_after(reply.headers.get("retry-after"))
            if delay is not None:
                self._queue.hold(delay)
            return _Passing(self._error("llm_unavailable", what, True), delay)
        if reply.status in wire.DENIED:
            hint = f"set {variable}" if variable else "name the variable with its key"
            return self._error("llm_denied", f"{what}; {hint}")
        if 300 <= reply.status < 400:
            what = f"answered {reply.status}: redirections are not followed; give its own address"
        error = self._error("llm_failed", what)
        return _Refused(error, refused) if refused else error

    def _answer(self, payload: bytes, attempts: int, refused: tuple[str, ...]) -> Answer:
        found = wire.completion_of(payload)
        if found is None:
            raise self._error("llm_failed", "answered with something else than a chat completion")
        choice, completion = found
        secrets = keys.secrets_for(self.endpoint)
        return Answer(
            text=without_keys(without_thoughts(choice.message.content or ""), *secrets),
            usage=usage.priced(self.endpoint, *completion.counts()),
            finish_reason=without_keys(choice.finish_reason or "", *secrets),
            attempts=attempts,
            refused=refused,
        )

    def _error(self, code: str, what: str, retryable: bool = False) -> ChatError:
        text = redact(f"{describe(self.endpoint)} {what}", *keys.secrets_for(self.endpoint))
        return ChatError(code, text, retryable=retryable)


def _cancelled(last: ChatError | None) -> ChatError:
    """`last` is what the tries before it met."""
    said = f"; {last.message}" if last is not None else ""
    return ChatError("cancelled", f"cancelled while waiting for a model{said}", retryable=True)


def _do_without(body: dict[str, Any], refusal: _Refused) -> None:
    """Newer models have another name for the token limit, and refuse some parameters."""
    name = refusal.parameter
    if name == "max_tokens" and name in body:
        body["max_completion_tokens"] = body.pop(name)
    elif name in wire.OPTIONAL_PARAMETERS and name in body:
        del body[name]
    else:
        raise refusal.error
