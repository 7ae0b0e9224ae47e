"""A role played by a chat model. The coder's reply carries its edits; see `reply_edits`."""

from __future__ import annotations

from treewright.kernel.http_client import when_set
from treewright.kernel.procs.cancellation import Deadline
from treewright.llm.chat import Answer, Message, Request
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError
from treewright.llm.usage import Usage
from treewright.tree.agents import prompts, reply_edits, transcript
from treewright.tree.agents.backend import AgentFailure, RoleReply, RoleRequest
from treewright.tree.config import OpenaiBackend
from treewright.tree.records import usage_log

_MAX_REPAIRS = 1
"""A coder gets this many more requests if its edits do not fit the files."""


class ChatAgent:
    """The backend `openai`."""

    def __init__(self, config: OpenaiBackend) -> None:
        self._endpoint = config.endpoint
        self._client = ChatClient(config.endpoint)

    def run(self, request: RoleRequest) -> RoleReply:
        log = request.log_dir / f"{request.role}_round_{request.round}.log"
        messages = [Message("user", request.prompt)]
        spent: list[Usage] = []
        try:
            text = self._converse(messages, spent, request)
        except AgentFailure as failure:
            failure.usage = sum(spent, failure.usage)
            failure.log = log
            raise
        finally:
            transcript.write_messages(log, messages, self._endpoint)
        return RoleReply(text, sum(spent, Usage()))

    def _converse(self, messages: list[Message], spent: list[Usage], request: RoleRequest) -> str:
        """Ask until a reply is usable. Append each answer to `messages` and its usage to
        `spent`."""
        repairs_left = _MAX_REPAIRS
        while True:
            answer = self._ask(messages, request, is_first=not (spent or request.answered))
            spent.append(answer.usage)
            usage_log.add(request.log_dir, answer.usage, role=request.role)
            messages.append(Message("assistant", answer.text))
            if request.role != "coder":
                return _with_note(answer)
            try:
                self._edit(answer, request)
                return _with_note(answer)
            except AgentFailure as failure:
                if not repairs_left:
                    raise
                repairs_left -= 1
                repair = (
                    f"None of your edits were applied: {failure.message}.\n{failure.detail}"
                    "Send all edits again, complete and corrected, in one of the formats described."
                )
                messages.append(Message("user", repair))

    def _ask(self, messages: list[Message], request: RoleRequest, is_first: bool) -> Answer:
        try:
            return self._client.ask(
                Request(messages, seed=request.seed), unwanted=when_set(request.cancel)
            )
        except ChatError as error:
            code, message = error.code, error.message
            out_of_time = isinstance(request.cancel, Deadline) and request.cancel.passed
            if code == "cancelled" and out_of_time and is_first:
                # The time limit passed before the endpoint answered once, which may be an outage.
                # After an answer, the candidate may have used up the time with its own rounds.
                code, message = "llm_timeout", f"the evaluation's time limit: {message}"
            raise AgentFailure(code, message, retryable=error.retryable) from None

    def _edit(self, answer: Answer, request: RoleRequest) -> None:
        if answer.finish_reason == "length":
            raise AgentFailure(
                "reply_truncated",
                f"the reply was cut off at {self._endpoint.max_tokens} tokens; raise `max_tokens`",
            )
        editable = request.view.editable(prompts.list_files(request.worktree))
        reply_edits.apply_edits(answer.text, request.worktree, editable)


def _with_note(answer: Answer) -> str:
    """Return the reply, after a note if the model refused parameters of the request."""
    if not answer.refused:
        return answer.text
    return f"[treewright: the model refused {', '.join(answer.refused)}]\n\n{answer.text}"
