"""Presets for known command-line agents: their arguments without a terminal, and their readers.

A preset has a command line for a role that may edit files, one for a role that may not, and a
reader for the output: the reply, the tokens, the cost. To call an agent in another way, give
`command` in the configuration.

Formats of output change between versions of an agent, and warnings are mixed in. So a reader uses
the parts that it recognises. If it recognises none, the whole output is the reply, without usage.
An agent that reports a failure has failed, even with exit code 0.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


PROVIDER_KEYS = frozenset({
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY", "GOOGLE_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "OPENAI_API_KEY",
    "OPENROUTER_API_KEY", "XAI_API_KEY",
})  # fmt: skip
"""Variables from which command-line agents read their key."""
_AWS_KEYS = frozenset({"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_USES_AWS = "CLAUDE_CODE_USE_BEDROCK"
_CLAUDE = ("claude", "--print", "--output-format", "json")
_GEMINI = ("gemini", "--output-format", "json")
_CODEX = ("codex", "exec", "--json", "--skip-git-repo-check")
_AIDER = (
    "aider",
    "--message-file",
    "{prompt_file}",
    "--yes-always",
    "--no-auto-commits",
    "--no-dirty-commits",
    "--no-gitignore",
    "--no-stream",
    "--no-pretty",
    "--no-check-update",
    "--no-show-release-notes",
    "--no-suggest-shell-commands",
    "--no-detect-urls",
    "--chat-history-file",
    "{log_dir}/aider.chat.history.md",
    "--input-history-file",
    "{log_dir}/aider.input.history",
)


def read_plain(output: str) -> RoleReply:
    """Return the whole output as the reply."""
    return RoleReply(output.strip())


def read_claude(output: str) -> RoleReply:
    """Read the output of `--output-format json`: one object of type `result`."""
    found = [item for item in _objects(output) if item.get("type") == "result"]
    if not found:
        return read_plain(output)
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


def read_codex(output: str) -> RoleReply:
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
    return RoleReply(text, usage) if text or events else read_plain(output)


def read_gemini(output: str) -> RoleReply:
    """Read the output of `--output-format json`: `response`, `stats` and perhaps `error`."""
    found = [item for item in _objects(output) if {"response", "error"} & item.keys()]
    if not found:
        return read_plain(output)
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


def read_aider(output: str) -> RoleReply:
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


def agent_keys() -> frozenset[str]:
    """Return the names of variables that may hold the key of a command-line agent."""
    return PROVIDER_KEYS | _AWS_KEYS if os.environ.get(_USES_AWS) else PROVIDER_KEYS


@dataclass(frozen=True, slots=True)
class Preset:
    """A known agent.

    `{prompt_file}`, `{log_dir}`, `{max_cost_usd}` and `{max_tokens}` in arguments are placeholders.
    Without `{prompt_file}` the agent reads its prompt from stdin.
    """

    title: str
    install: str
    editing: tuple[str, ...]
    reading: tuple[str, ...]
    read: Callable[[str], RoleReply]
    cost_limit: tuple[str, ...] = ()
    """Additional arguments if the configuration limits the cost of a call."""
    debris: tuple[str, ...] = ()
    """Patterns of untracked files in the worktree's root that are removed after a call."""

    @property
    def executable(self) -> str:
        return self.editing[0]


PRESETS: dict[str, Preset] = {
    "claude": Preset(
        title="Claude Code",
        install="npm install -g @anthropic-ai/claude-code",
        editing=(*_CLAUDE, "--permission-mode", "acceptEdits"),
        reading=(*_CLAUDE, "--disallowedTools", "Edit,MultiEdit,Write,NotebookEdit,Bash"),
        read=read_claude,
        cost_limit=("--max-budget-usd", "{max_cost_usd}"),
    ),
    "codex": Preset(
        title="Codex CLI",
        install="npm install -g @openai/codex",
        editing=(*_CODEX, "--sandbox", "workspace-write", "-"),
        reading=(*_CODEX, "--sandbox", "read-only", "-"),
        read=read_codex,
    ),
    "gemini": Preset(
        title="Gemini CLI",
        install="npm install -g @google/gemini-cli",
        editing=(*_GEMINI, "--approval-mode", "auto_edit"),
        reading=(*_GEMINI, "--approval-mode", "default"),
        read=read_gemini,
    ),
    "aider": Preset(
        title="Aider",
        install="pip install aider-chat",
        editing=_AIDER,
        reading=(*_AIDER, "--chat-mode", "ask"),
        read=read_aider,
        debris=(".aider*",),
    ),
}
