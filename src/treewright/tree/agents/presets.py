"""Presets for known command-line agents: their arguments without a terminal, and their readers.

A preset has a command line for a role that may edit files, one for a role that may not, and a
reader for the output. To call an agent in another way, give `command` in the configuration.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from treewright.tree.agents import cli_output
from treewright.tree.agents.backend import RoleReply

PROVIDER_KEYS = frozenset({
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY", "GOOGLE_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "OPENAI_API_KEY",
    "OPENROUTER_API_KEY", "XAI_API_KEY",
})  # fmt: skip
"""Variables from which command-line agents read their key."""
_AWS_KEYS = frozenset({"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_USES_AWS = "CLAUDE_CODE_USE_BEDROCK"


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

PRESETS: dict[str, Preset] = {
    "claude": Preset(
        title="Claude Code",
        install="npm install -g @anthropic-ai/claude-code",
        editing=(*_CLAUDE, "--permission-mode", "acceptEdits"),
        reading=(*_CLAUDE, "--disallowedTools", "Edit,MultiEdit,Write,NotebookEdit,Bash"),
        read=cli_output.claude,
        cost_limit=("--max-budget-usd", "{max_cost_usd}"),
    ),
    "codex": Preset(
        title="Codex CLI",
        install="npm install -g @openai/codex",
        editing=(*_CODEX, "--sandbox", "workspace-write", "-"),
        reading=(*_CODEX, "--sandbox", "read-only", "-"),
        read=cli_output.codex,
    ),
    "gemini": Preset(
        title="Gemini CLI",
        install="npm install -g @google/gemini-cli",
        editing=(*_GEMINI, "--approval-mode", "auto_edit"),
        reading=(*_GEMINI, "--approval-mode", "default"),
        read=cli_output.gemini,
    ),
    "aider": Preset(
        title="Aider",
        install="pip install aider-chat",
        editing=_AIDER,
        reading=(*_AIDER, "--chat-mode", "ask"),
        read=cli_output.aider,
        debris=(".aider*",),
    ),
}
