"""A role on a chat endpoint. The coder's reply carries its edits; see `replies`."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.http_client import when_set
from treewright.kernel.procs.cancellation import Deadline
from treewright.llm import keys
from treewright.llm.chat import Answer, Message, Request
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError
from treewright.llm.usage import Usage
from treewright.tree.agents import reply_edits, source_view, transcript
from treewright.tree.agents.backend import AgentFailure, RoleReply, RoleRequest
from treewright.tree.config import OpenaiBackend
from treewright.tree.records import usage_log

_REPAIRS = 1
"""How often a coder whose edits do not fit the files is told so and asked again."""


class ChatAgent:
    def __init__(self, config: OpenaiBackend) -> None:
        self._endpoint = config.endpoint
        self._client = ChatClient(config.endpoint)

    def run(self, request: RoleRequest) -> RoleReply:
        messages = [Message("user", request.prompt)]
        spent: list[Usage] = []
        try:
            text = self._converse(messages, spent, request)
        except AgentFailure as failure:
            failure.usage = sum(spent, failure.usage)
            failure.log = _log_path(request)
            raise
        finally:
            self._log(messages, request)
        return RoleReply(text, sum(spent, Usage()))

    def _converse(self, messages: list[Message], spent: list[Usage], request: RoleRequest) -> str:
        """Asks until the reply can be used; `messages` and `spent` grow with each answer."""
        repairs_left = _REPAIRS
        while True:
            answer = self._ask(messages, request, is_first=not (spent or request.answered))
            spent.append(answer.usage)
            usage_log.add(request.log_dir, answer.usage, role=request.role)
            messages.append(Message("assistant", answer.text))
            if request.role != "coder":
                return _noted(answer)
            try:
                self._edit(answer, request)
                return _noted(answer)
            except AgentFailure as failure:
                if not repairs_left:
                    raise
                repairs_left -= 1
                messages.append(Message("user", _please_repair(failure)))

    def _ask(self, messages: list[Message], request: RoleRequest, is_first: bool) -> Answer:
        try:
            return self._client.ask(
                Request(messages, seed=request.seed), unwanted=when_set(request.cancel)
            )
        except ChatError as error:
            code, message = error.code, error.message
            out_of_time = isinstance(request.cancel, Deadline) and request.cancel.passed
            if code == "cancelled" and out_of_time and is_first:
                # Nobody cancelled: the time was up before the endpoint had answered once. Where it
                # has, the time may have gone into rounds that only this candidate needs.
                code, message = "llm_timeout", f"the evaluation's time limit: {message}"
            raise AgentFailure(code, message, retryable=error.retryable) from None

    def _edit(self, answer: Answer, request: RoleRequest) -> None:
        if answer.finish_reason == "length":
            raise AgentFailure(
                "reply_truncated",
                f"the reply was cut off at {self._endpoint.max_tokens} tokens; raise `max_tokens`",
            )
        editable = request.view.editable(source_view.files(request.worktree))
        reply_edits.apply(answer.text, request.worktree, editable)

    def _log(self, messages: list[Message], request: RoleRequest) -> None:
        parts = [f"## {message.role}\n\n{message.content.strip()}\n" for message in messages]
        transcript.write(_log_path(request), "\n".join(parts), *keys.secrets_for(self._endpoint))


def _log_path(request: RoleRequest) -> Path:
    return request.log_dir / f"{request.role}_round_{request.round}.log"


def _noted(answer: Answer) -> str:
    """The reply, with a word in front of it if the model was asked with fewer parameters."""
    if not answer.refused:
        return answer.text
    return f"[treewright: the model refused {', '.join(answer.refused)}]\n\n{answer.text}"


def _please_repair(failure: AgentFailure) -> str:
    return (
        f"None of your edits were applied: {failure.message}.\n{failure.detail}"
        "Send all edits again, complete and corrected, in one of the formats described."
    )
