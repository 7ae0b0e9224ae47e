"""The interface of an agent backend: a role's prompt in, a reply out, edits in the worktree."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from treewright.llm.usage import Usage
from treewright.tree.agents.prompts import View
from treewright.tree.guard.isolation import Isolation

AGENT_TIMEOUT = "agent_timeout"

Role = Literal["planner", "coder", "reviewer"]


class AgentFailure(Exception):
    """A call of a role failed.

    Args:
        code: The reason code of the failure; it becomes the error code of the evaluation.
        message: One line for the user.
        retryable: The same call may succeed later.
        log: The log of the call.
        usage: The usage of the failed call, which counts as spent.
        detail: More lines about the failure, for the model that is asked again.
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
    """One call of one role."""

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
    """Additional environment variables for commands."""
    isolation: Isolation | None = None
    answered: bool = False
    """A model has answered in this evaluation before."""
    view: View = field(default_factory=View)


@dataclass(frozen=True, slots=True)
class RoleReply:
    """The text of the agent's reply (a plan, a report or a review), and its usage."""

    text: str
    usage: Usage = field(default_factory=Usage)


class Backend(Protocol):
    """A way to play a role. As the coder it edits files in `request.worktree`."""

    def run(self, request: RoleRequest) -> RoleReply:
        """Play the role once.

        Raises:
            AgentFailure: the role gave no usable reply.
        """
        ...
