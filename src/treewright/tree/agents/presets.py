"""How the known command-line agents are called without a terminal, and read afterwards.

Each preset says what to run for a role that may edit and for one that may not, and how
its output becomes a reply. A preset is data: to call an agent differently, give
`command` in the configuration.
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
"""What command-line agents find their key in."""
_AWS_KEYS = frozenset({"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_USES_AWS = "CLAUDE_CODE_USE_BEDROCK"


def agent_keys() -> frozenset[str]:
    """Variables with the key of a command-line agent, whichever it is."""
    return PROVIDER_KEYS | _AWS_KEYS if os.environ.get(_USES_AWS) else PROVIDER_KEYS


@dataclass(frozen=True, slots=True)
class Preset:
    """`{prompt_file}`, `{log_dir}`, `{max_cost_usd}` and `{max_tokens}` in an argument are
    replaced; without the first the prompt goes to stdin."""

    title: str
    install: str
    editing: tuple[str, ...]
    reading: tuple[str, ...]
    read: Callable[[str], RoleReply]
    cost_limit: tuple[str, ...] = ()
    """What is added where the configuration says what a call may cost."""
    debris: tuple[str, ...] = ()
    """Names that the agent leaves in the worktree's root; untracked ones are removed."""

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
