"""The chat protocol's small print: what a reply looks like, when to come back, what it cost."""

from __future__ import annotations

import math
import time
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from treewright.kernel import jsontext
from treewright.tree.config import EndpointConfig
from treewright.tree.records.model import Usage, sane_usage

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
OPTIONAL_PARAMETERS = frozenset({"temperature", "seed"})
"""Some models refuse these; an answer without them is better than none, and the log says so."""


class ReplyMessage(msgspec.Struct):
    content: str | None = None


class Choice(msgspec.Struct):
    message: ReplyMessage
    finish_reason: str | None = None


class Counts(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Completion(msgspec.Struct):
    choices: list[Choice]
    usage: Counts | None = None


def priced(endpoint: EndpointConfig, counts: Counts | None) -> Usage:
    if counts is None:
        return Usage()
    used = sane_usage(Usage(counts.prompt_tokens, counts.completion_tokens))
    cost = (
        used.prompt_tokens * (endpoint.usd_per_million_prompt_tokens or 0.0)
        + used.completion_tokens * (endpoint.usd_per_million_completion_tokens or 0.0)
    ) / 1e6
    return sane_usage(Usage(used.prompt_tokens, used.completion_tokens, cost))


def retry_after(value: str | None) -> float | None:
    """Seconds to wait, from either form of the header; None if there is no sensible one."""
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
    """What an error reply says in one line, and the parameter that it refuses, if it does."""
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
    lines = text.strip().splitlines()
    return (lines[0][:200] if lines else ""), refused
