"""The chat client of every engine: one request, one answer.

The client repeats a request that failed for a passing reason (429, 5xx, a broken connection) until
its time limit ends. Every try first waits in the endpoint's `request_queue`; this wait is not part
of the time limit. The key is read from the environment for each call and appears only in the
header of the request: not in the client, not in messages, not in files. Redirections are not
followed, so that no other host sees the key.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from treewright.kernel import http_client
from treewright.kernel.http_client import Unwanted
from treewright.llm import chat, keys, usage
from treewright.llm.chat import Answer, Request, without_reasoning
from treewright.llm.endpoint import ChatError, Endpoint, address, check_installed, describe
from treewright.llm.redaction import redact, without_keys
from treewright.llm.request_queue import PauseTooLong, queue_for

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 30.0
_TRIES_BEFORE_WARNING = 3
_log = logging.getLogger("treewright")

Waiting = Callable[[], AbstractContextManager[Any]]
"""A context in which a request waits in the queue of its endpoint."""


class _PassingFailure(Exception):
    """A failure that may be gone at the next try, after `delay` seconds where that is known."""

    def __init__(self, error: ChatError, delay: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.delay = delay


class _RefusedParameter(Exception):
    """The model does not accept a parameter of the request."""

    def __init__(self, error: ChatError, parameter: str) -> None:
        super().__init__(error.message)
        self.error = error
        self.parameter = parameter


class ChatClient:
    """Asks one endpoint. Holds no connection and no key between calls."""

    def __init__(self, endpoint: Endpoint) -> None:
        check_installed()
        self.endpoint = endpoint

    def ask(self, request: Request, *, unwanted: Unwanted = lambda: False) -> Answer:
        """Send a request and wait for the answer; see `ask_async`.

        In a thread with a running event loop, as in a notebook, the loop of the request has
        another thread.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.ask_async(request, unwanted=unwanted))
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(
                lambda: asyncio.run(self.ask_async(request, unwanted=unwanted))
            ).result()

    async def ask_async(
        self,
        request: Request,
        *,
        unwanted: Unwanted = lambda: False,
        waiting: Waiting = contextlib.nullcontext,
    ) -> Answer:
        """Send a request and return the answer.

        Args:
            request: The messages and the parameters of the request.
            unwanted: Cancels the request when it returns true.
            waiting: Makes the context in which the request waits in the queue of its endpoint.

        Raises:
            ChatError: There is no answer; the code and the message say why.
        """
        keys.key_for(self.endpoint)  # a missing key is reported without waiting in the queue
        queue = queue_for(self.endpoint)
        limit = request.timeout_seconds or self.endpoint.timeout_seconds
        deadline = time.monotonic() + limit
        body = chat.body_of(self.endpoint, request)
        tokens = chat.estimated_tokens(self.endpoint, request)
        jitter = random.Random(f"{request.seed}:{self.endpoint.model}")  # noqa: S311
        attempt = 1
        refused: list[str] = []
        last: ChatError | None = None
        while True:
            spent: int | None = None
            try:
                with waiting():
                    ticket = await queue.admit(tokens, limit, unwanted)
                try:
                    deadline += ticket.waited_seconds
                    payload = await self._post(body, deadline - time.monotonic(), unwanted)
                    answer = self._read_answer(payload, attempt, tuple(refused))
                    spent = answer.usage.tokens or None
                    return answer
                finally:
                    queue.finish(ticket, spent)
            except PauseTooLong as pause:
                raise self._error("llm_unavailable", str(pause), True) from None
            except http_client.Cancelled:
                raise _cancelled(last) from None
            except _RefusedParameter as refusal:
                _remove_parameter(body, refusal)
                refused.append(refusal.parameter)
                continue
            except TimeoutError:
                # The last try had little time left; the error of an earlier try says more.
                reason = f"did not answer in {limit:g} s"
                raise last or self._error("llm_timeout", reason, True) from None
            except _PassingFailure as failure:
                last = failure.error
                delay = failure.delay
                if delay is None:
                    delay = min(_FIRST_DELAY_SECONDS * 2 ** (attempt - 1), _LONGEST_DELAY_SECONDS)
                    delay *= 0.75 + jitter.random() / 2
                out_of_tries = request.tries is not None and attempt >= request.tries
                if out_of_tries or time.monotonic() + delay >= deadline:
                    raise failure.error from None
                if request.tries is None and attempt == _TRIES_BEFORE_WARNING:
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
                raise _PassingFailure(self._error("llm_unreachable", str(none), True)) from None
            raise self._error("llm_failed", str(none)) from None
        if reply.ok:
            return reply.body
        raise self._failure_of(reply)

    def _failure_of(self, reply: http_client.Reply) -> Exception:
        """Return the exception for a reply without an answer."""
        variable = keys.name_for(self.endpoint)
        said, refused = chat.error_of(reply.body)
        reason = chat.first_line(redact(said, *keys.secrets_for(self.endpoint)))
        message = f"answered {reply.status}" + (f": {reason}" if reason else "")
        if reply.status in chat.PASSING_STATUSES:
            delay = chat.retry_after(reply.headers.get("retry-after"))
            if delay is not None:
                queue_for(self.endpoint).pause(delay)
            return _PassingFailure(self._error("llm_unavailable", message, True), delay)
        if reply.status in chat.DENIED_STATUSES:
            hint = f"set {variable}" if variable else "name the variable with its key"
            return self._error("llm_denied", f"{message}; {hint}")
        if 300 <= reply.status < 400:
            message = (
                f"answered {reply.status}: redirections are not followed; give its own address"
            )
        error = self._error("llm_failed", message)
        return _RefusedParameter(error, refused) if refused else error

    def _read_answer(self, payload: bytes, attempts: int, refused: tuple[str, ...]) -> Answer:
        found = chat.completion_of(payload)
        if found is None:
            raise self._error("llm_failed", "answered with something else than a chat completion")
        choice, completion = found
        secrets = keys.secrets_for(self.endpoint)
        return Answer(
            text=without_keys(without_reasoning(choice.message.content or ""), *secrets),
            usage=usage.priced(self.endpoint, *completion.counts()),
            finish_reason=without_keys(choice.finish_reason or "", *secrets),
            attempts=attempts,
            refused=refused,
        )

    def _error(self, code: str, message: str, retryable: bool = False) -> ChatError:
        text = redact(f"{describe(self.endpoint)} {message}", *keys.secrets_for(self.endpoint))
        return ChatError(code, text, retryable=retryable)


def _cancelled(last: ChatError | None) -> ChatError:
    """Return the error of a cancelled request, with the error of its last try."""
    suffix = f"; {last.message}" if last is not None else ""
    return ChatError("cancelled", f"cancelled while waiting for a model{suffix}", retryable=True)


def _remove_parameter(body: dict[str, Any], refusal: _RefusedParameter) -> None:
    """Change a request for a model that refuses a parameter; raise if it cannot do without it.

    Newer models have another name for the token limit.
    """
    name = refusal.parameter
    if name == "max_tokens" and name in body:
        body["max_completion_tokens"] = body.pop(name)
    elif name in chat.OPTIONAL_PARAMETERS and name in body:
        del body[name]
    else:
        raise refusal.error
