"""The chat protocol: requests, answers and error replies of OpenAI-compatible endpoints.

Some models leave their reasoning in the answer, between `<think>` and `</think>`. Reasoning is no
part of the answer: it quotes formats, tries edits and names ideas that it drops.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import msgspec

from treewright.kernel.text import jsontext
from treewright.llm.endpoint import Endpoint
from treewright.llm.usage import Usage

PASSING_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
DENIED_STATUSES = frozenset({401, 402, 403})
OPTIONAL_PARAMETERS = frozenset({"temperature", "seed"})
"""Parameters that the client leaves out for models that refuse them; the log says so."""
_BYTES_A_TOKEN = 4
_LONGEST_REASON = 200
_OPENING = re.compile(r"^[ \t]*<(think|thinking|thought|reasoning)>", re.MULTILINE)
_CLOSING = re.compile(r"</(?:think|thinking|thought|reasoning)>")
_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A schema for the answer, which is then a JSON document."""

    name: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One request. A field that is None has the value of the endpoint's settings.

    `tries` limits how often the request is sent; if it is None, only the time limit does.
    """

    messages: Sequence[Message]
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    response_format: Literal["text", "json"] | JsonSchema = "text"
    timeout_seconds: float | None = None
    tries: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a model, after `attempts` tries."""

    text: str
    usage: Usage
    finish_reason: str
    attempts: int
    refused: tuple[str, ...] = ()
    """Parameters that the model refused and that the client left out."""


class _ReplyMessage(msgspec.Struct):
    content: str | None = None


class Choice(msgspec.Struct):
    message: _ReplyMessage
    finish_reason: str | None = None


class _Counts(msgspec.Struct):
    prompt_tokens: msgspec.Raw = msgspec.Raw(b"null")
    completion_tokens: msgspec.Raw = msgspec.Raw(b"null")


def _decode_count(raw: msgspec.Raw) -> object:
    try:
        return jsontext.decode(bytes(raw))
    except msgspec.DecodeError:
        return None


class Completion(msgspec.Struct):
    """A reply with an answer.

    `usage` is decoded separately, count by count: a wrong count, such as a number that no float
    holds, must not lose the answer.
    """

    choices: list[Choice]
    usage: msgspec.Raw = msgspec.Raw(b"null")

    def counts(self) -> tuple[object, object]:
        """Return the tokens of the prompt and of the answer, as the endpoint reports them."""
        try:
            counts = jsontext.decode(bytes(self.usage), type=_Counts)
        except msgspec.DecodeError:
            return None, None
        return _decode_count(counts.prompt_tokens), _decode_count(counts.completion_tokens)


def body_of(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    """Return the JSON document to send."""
    temperature, most = request.temperature, request.max_tokens
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [
            {"role": item.role, "content": _sendable(item.content)} for item in request.messages
        ],
        "temperature": endpoint.temperature if temperature is None else temperature,
        "max_tokens": endpoint.max_tokens if most is None else most,
    }
    if request.seed is not None:
        body["seed"] = request.seed
    if isinstance(request.response_format, JsonSchema):
        wanted = {"name": request.response_format.name, "schema": request.response_format.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    elif request.response_format == "json":
        body["response_format"] = {"type": "json_object"}
    return body


def estimated_tokens(endpoint: Endpoint, request: Request) -> int:
    """Return the tokens that a request may use, for `tokens_per_minute`.

    The estimate counts until the answer reports the true number.
    """
    asked = sum(len(item.content.encode("utf-8", "replace")) for item in request.messages)
    return asked // _BYTES_A_TOKEN + (request.max_tokens or endpoint.max_tokens)


def completion_of(payload: bytes) -> tuple[Choice, Completion] | None:
    """Return the answer in a reply; None if the reply has none."""
    try:
        completion = jsontext.decode(payload, type=Completion)
    except msgspec.DecodeError:
        return None
    return (completion.choices[0], completion) if completion.choices else None


def retry_after(value: str | None) -> float | None:
    """Return the seconds of a `Retry-After` header; None if it has no valid value."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def error_of(data: bytes) -> tuple[str, str]:
    """Return the message of an error reply, and the parameter that it refuses, or an empty text."""
    try:
        value: Any = jsontext.decode(data)
    except msgspec.DecodeError:
        value = None
    error = value.get("error", value) if isinstance(value, dict) else value
    text, refused = data.decode("utf-8", "replace"), ""
    if isinstance(error, dict):
        text = str(error.get("message") or text)
        if str(error.get("code")) in ("unsupported_parameter", "unsupported_value"):
            refused = str(error.get("param") or "")
    elif isinstance(error, str):
        text = error
    return text, refused


def first_line(text: str) -> str:
    """Return the beginning of the first line of a text.

    Secrets must have been removed before: a key that is cut in two is not found any more.
    """
    lines = text.strip().splitlines()
    return lines[0][:_LONGEST_REASON] if lines else ""


def _sendable(text: str) -> str:
    """Replace characters that UTF-8 cannot encode, such as those of some file names."""
    return text.encode("utf-8", "replace").decode("utf-8")


def without_reasoning(reply: str) -> str:
    """Return the reply without its reasoning.

    A tag counts at the beginning of a line and outside of code blocks. A closing tag without an
    opening one ends reasoning that began with the reply, because the server put the opening tag
    into the prompt. An opening tag without a closing one begins reasoning that was cut off.
    """
    at = 0
    while opening := _OPENING.search(reply, at):
        if _is_in_code(reply, opening.start()):
            at = opening.end()
            continue
        closing = re.compile(f"</{opening[1]}>").search(reply, opening.end())
        at = opening.start()
        reply = reply[:at] + (reply[closing.end() :] if closing else "")
    ends = [m for m in _CLOSING.finditer(reply) if not _is_in_code(reply, m.start())]
    return reply[ends[-1].end() :] if ends else reply


def _is_in_code(text: str, position: int) -> bool:
    return len(_FENCE.findall(text, 0, position)) % 2 == 1
