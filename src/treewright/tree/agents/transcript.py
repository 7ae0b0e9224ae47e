"""Logs of agents' work, without secrets, and the record and the verdict of a review round."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from treewright.kernel.storage import untrusted
from treewright.kernel.storage.atomic import storage_errors
from treewright.llm import keys
from treewright.llm.chat import Message
from treewright.llm.redaction import redact
from treewright.llm.usage import Usage, describe_cost
from treewright.tree.agents.backend import AgentFailure
from treewright.tree.config import EndpointConfig
from treewright.tree.ideas.idea_text import fence_for

_VERDICTS = {
    "approve": "approved",
    "request_changes": "changes requested",
    "unparsable": "changes requested (the review did not end with a VERDICT line)",
    "no_reviewer": "accepted without review: no reviewer is configured",
    "": "not reached",
}
Verdict = Literal["approve", "request_changes", "unparsable"]
_LINE = re.compile(r"[\s*_`>#-]*VERDICT:[\s*_`]*(APPROVE|REQUEST_CHANGES)[\s*_`.]*", re.IGNORECASE)


def write(path: Path, text: str, *names: str | None) -> None:
    """Write a log without secrets. `names` are environment variables that hold secrets."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with untrusted.create(path) as file:
            file.write(redact(text, *names).encode("utf-8", "surrogateescape"))


def write_messages(path: Path, messages: Sequence[Message], endpoint: EndpointConfig) -> None:
    """Write a conversation with a chat model, without the keys of its endpoint."""
    parts = [f"## {message.role}\n\n{message.content.strip()}\n" for message in messages]
    write(path, "\n".join(parts), *keys.secrets_for(endpoint))


def write_for_use(path: Path, text: str) -> None:
    """Write a file with its secrets, for a child process. Call `scrub` afterwards."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with untrusted.create(path) as file:
            file.write(text.encode("utf-8", "surrogateescape"))


def scrub(path: Path, *names: str | None) -> str:
    """Remove secrets from a file that a child process used. Return the text with its secrets."""
    try:
        text = untrusted.read(path, untrusted.LARGEST_TEXT).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except untrusted.NotPlain:
        write(path, "[treewright: this was not a plain file any more, and was removed]\n")
        return ""
    if redact(text, *names) != text:
        write(path, text, *names)
    return text


@dataclass(slots=True)
class ReviewRound:
    """The record of a round. It is filled step by step, so that a failed round has one too."""

    number: int
    report: str = ""
    diff_stat: str = ""
    review: str = ""
    verdict: str = ""
    coder_usage: Usage = field(default_factory=Usage)
    reviewer_usage: Usage = field(default_factory=Usage)
    failure: AgentFailure | None = None

    def write(self, log_dir: Path) -> None:
        write(review_path(log_dir, self.number), self._render())

    def _render(self) -> str:
        fence = fence_for(self.diff_stat)
        lines = [
            f"# Review round {self.number}",
            "",
            f"- verdict: {_VERDICTS[self.verdict]}",
            f"- coder: {_describe_usage(self.coder_usage)}",
            f"- reviewer: {_describe_usage(self.reviewer_usage)}",
        ]
        if self.failure is not None:
            lines.append(f"- failed: `{self.failure.code}`: {self.failure.message}")
        lines += ["", "## Coder's report", "", self.report.strip() or "(nothing)"]
        lines += ["", "## Files changed", "", fence, self.diff_stat or "(none)", fence]
        lines += ["", "## Review", "", self.review.strip() or "(none)", ""]
        return "\n".join(lines)


def review_path(log_dir: Path, number: int) -> Path:
    """Return the path of the record of a round."""
    return log_dir / f"review_round_{number}.md"


def _describe_usage(usage: Usage) -> str:
    if usage == Usage():
        return "no usage reported"
    tokens = f"{usage.prompt_tokens} prompt + {usage.completion_tokens} completion tokens"
    return f"{tokens}, {describe_cost(usage.cost_usd, usage.unpriced_tokens)}"


def parse_verdict(review: str) -> Verdict:
    """Return the verdict on the last line with text; earlier lines may quote the two forms."""
    lines = [line for line in review.splitlines() if line.strip(" \t*_`")]
    match = _LINE.fullmatch(lines[-1]) if lines else None
    if match is None:
        return "unparsable"
    return "approve" if match[1].upper() == "APPROVE" else "request_changes"
