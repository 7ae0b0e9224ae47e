"""Readers for the output of command-line agents: the reply, the tokens, the cost.

Formats change between versions of an agent, and warnings are mixed in. So a reader uses the parts
that it recognises. If it recognises none, the whole output is the reply, without usage. An agent
that reports a failure has failed, even with exit code 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from treewright.llm.usage import Usage
from treewright.tree.agents.backend import AgentFailure, RoleReply

_AIDER_TOKENS = re.compile(
    r"^Tokens: ([\d.]+)([kM]?) sent(?:, [^,]*?cache[^,]*)*, ([\d.]+)([kM]?) received\.",
    re.MULTILINE,
)
_AIDER_COST = re.compile(r"Cost: \$([\d.]+) message, \$([\d.]+) session")
_MAX_USD = 1e6
_MAX_TOKENS = 1e12
"""Larger amounts are errors of the reporter and count as 0."""
_MULTIPLE = {"": 1, "k": 1_000, "M": 1_000_000}


def plain(output: str) -> RoleReply:
    """Return the whole output as the reply."""
    return RoleReply(output.strip())


def claude(output: str) -> RoleReply:
    """Read the output of `--output-format json`: one object of type `result`."""
    found = [item for item in _objects(output) if item.get("type") == "result"]
    if not found:
        return plain(output)
    result = found[-1]
    text = str(result.get("result") or "")
    usage = _claude_usage(result)
    if result.get("is_error"):
        reason = text or str(result.get("subtype") or "no reason given")
        raise AgentFailure("agent_failed", f"claude reports: {_first_line(reason)}", usage=usage)
    return RoleReply(text, usage)


def _claude_usage(result: dict[str, Any]) -> Usage:
    counts = _table(result.get("usage"))
    prompt = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return Usage(
        sum(_count(counts.get(name)) for name in prompt),
        _count(counts.get("output_tokens")),
        _amount(result.get("total_cost_usd")),
    )


def codex(output: str) -> RoleReply:
    """Read the output of `exec --json`: one event per line; the last agent message is the reply."""
    events = list(_objects(output))
    usage = Usage()
    text = ""
    failed = ""
    for event in events:
        item = _table(event.get("item"))
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            text = str(item.get("text") or "")
        elif event.get("type") == "turn.completed":
            counts = _table(event.get("usage"))
            usage += Usage(_count(counts.get("input_tokens")), _count(counts.get("output_tokens")))
        elif event.get("type") == "turn.failed":
            failed = str(_table(event.get("error")).get("message") or "no reason given")
    if failed:
        raise AgentFailure("agent_failed", f"codex reports: {_first_line(failed)}", usage=usage)
    return RoleReply(text, usage) if text or events else plain(output)


def gemini(output: str) -> RoleReply:
    """Read the output of `--output-format json`: `response`, `stats` and perhaps `error`."""
    found = [item for item in _objects(output) if {"response", "error"} & item.keys()]
    if not found:
        return plain(output)
    result = found[-1]
    usage = Usage()
    for model in _table(_table(result.get("stats")).get("models")).values():
        tokens = _table(_table(model).get("tokens"))
        thought = _count(tokens.get("candidates")) + _count(tokens.get("thoughts"))
        usage += Usage(_count(tokens.get("prompt")), thought)
    if result.get("error"):
        reason = str(_table(result["error"]).get("message") or result["error"])
        raise AgentFailure("agent_failed", f"gemini reports: {_first_line(reason)}", usage=usage)
    return RoleReply(str(result.get("response") or ""), usage)


def aider(output: str) -> RoleReply:
    """Read prose with a line of rounded token counts for every message."""
    usage = Usage()
    for sent, sent_unit, received, received_unit in _AIDER_TOKENS.findall(output):
        usage += Usage(_rounded(sent, sent_unit), _rounded(received, received_unit))
    costs = _AIDER_COST.findall(output)
    session = _amount(_number(costs[-1][1])) if costs else 0.0
    return RoleReply(output.strip(), usage + Usage(cost_usd=session))


def _objects(output: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that start at the beginning of a line."""
    decoder = json.JSONDecoder()
    position = 0
    for match in re.finditer(r"^[ \t]*\{", output, re.MULTILINE):
        if match.start() < position:
            continue
        try:
            value, position = decoder.raw_decode(output, match.end() - 1)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 and value is not True else 0


def _rounded(digits: str, unit: str) -> int:
    return round(_number(digits) * _MULTIPLE[unit])


def _number(digits: str) -> float:
    """Return digits and dots as a number. A model may have written them: 0 if they are invalid."""
    try:
        value = float(digits)
    except ValueError:
        return 0.0
    return value if value < _MAX_TOKENS else 0.0


def _amount(value: object) -> float:
    if isinstance(value, int | float) and value is not True and 0 < value < _MAX_USD:
        return float(value)
    return 0.0


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:300] if text.strip() else ""
