"""The interface of an agent backend: a role's prompt in, a reply out, edits in the worktree."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from treewright.llm.usage import Usage
from treewright.tree.agents.view import View
from treewright.tree.guard.isolation import Isolation

AGENT_TIMEOUT = "agent_timeout"

Role = Literal["planner", "coder", "reviewer"]


class AgentFailure(Exception):
    """A role could not do its part. `code` becomes the evaluation's error code.

    `usage` is what had been spent by then: a failed attempt costs money too. `detail` are more
    lines about the failure, for the model that is asked again.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        log: Path | None = None,
        usage: Usage | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.log = log
        self.usage = usage or Usage()
        self.detail = detail
        self.roles: dict[str, Usage] = {}


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """One call of one role. `answered`: a model has answered in this evaluation already."""

    role: Role
    round: int
    prompt: str
    idea: str
    worktree: Path
    log_dir: Path
    seed: int = 0
    owner: str = ""
    cancel: threading.Event | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    isolation: Isolation | None = None
    answered: bool = False
    view: View = field(default_factory=View)


@dataclass(frozen=True, slots=True)
class RoleReply:
    """`text` is what the agent said (a plan, a report, a review)."""

    text: str
    usage: Usage = field(default_factory=Usage)


class Backend(Protocol):
    """A coder backend leaves its edits in `request.worktree`; others leave it alone."""

    def run(self, request: RoleRequest) -> RoleReply: ...
