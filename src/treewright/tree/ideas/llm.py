"""Ideas from a chat endpoint, in a format that is read strictly.

A reply that does not hold to it is sent back once; what then cannot be read is an
error, because an idea that was guessed from prose would be tested as if it were meant.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable

from treewright.kernel.http_client import once_set
from treewright.llm import keys
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError
from treewright.llm.usage import Usage
from treewright.llm.wire import Answer, Message, Request
from treewright.tree.agents import prompts, transcript
from treewright.tree.agents.source_view import PromptTooLong, show_files
from treewright.tree.config import LlmIdeas
from treewright.tree.ideas import node_context
from treewright.tree.ideas.base import (
    Idea,
    IdeaSourceError,
    NodeContext,
    Proposals,
    stop_if_cancelled,
)
from treewright.tree.ideas.telling import PROMPT_CHARS
from treewright.tree.ideas.text import blocks, key
from treewright.tree.records import usage_log

_HEADING = re.compile(r"## IDEA: *(\S.*?) *\r?")
_REMINDER = (
    "Your reply could not be read. Start every idea with a line `## IDEA: <title>` and write "
    "the idea below it. Send all ideas again."
)


class LlmSource:
    def __init__(self, config: LlmIdeas) -> None:
        self._config = config
        self._client = ChatClient(config.endpoint)

    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        messages = [Message("user", self._prompt(context))]
        known = frozenset(taken)
        usage = Usage()
        try:
            for last in (False, True):
                answer = self._ask(messages, context)
                usage += answer.usage
                name = usage_log.of_expansion(context.round)
                usage_log.add(context.scratch.parent, answer.usage, name)
                messages.append(Message("assistant", answer.text))
                texts = parse(answer.text, cut_off=answer.finish_reason == "length")
                if texts or last:
                    break
                messages.append(Message("user", _REMINDER))
        finally:
            self._log(messages, context)
        if not texts:
            raise IdeaSourceError(self._why(answer, context))
        new = [text for text in texts if key(text) not in known][: context.wanted]
        origin = f"llm:{self._config.endpoint.model}"
        return Proposals([Idea(text, origin) for text in new], usage)

    def _prompt(self, context: NodeContext) -> str:
        template = prompts.load("ideas", self._config.prompt, context.repo)
        earlier = node_context.ideas_not_to_repeat(context)
        node = node_context.as_markdown(context, 0, with_task=False).strip()
        values = {
            "task": context.task or prompts.NO_TASK,
            "count": str(context.wanted),
            "node": node,
            "earlier_ideas": "",
            "repository": "",
        }
        room = self._config.prompt_tokens * prompts.CHARS_A_TOKEN
        room -= len(prompts.substitute(template, values))
        try:
            if room < 0:
                raise PromptTooLong(f"it is {-room} characters too long without any file")
            if prompts.mentions(template, "repository"):
                # Files that may change take what they need, all others at most the half.
                about = "\n".join(idea.text for idea in earlier)
                view, most = context.view, room if context.view.editable_blocks else room // 2
                values["repository"] = show_files(context.checkout, about, most, view)
                room -= len(values["repository"])
        except PromptTooLong as problem:
            raise IdeaSourceError(
                f"the prompt for ideas is longer than {self._config.prompt_tokens} tokens: "
                f"{problem}; raise `prompt_tokens`"
            ) from None
        told = min(room // 2, PROMPT_CHARS)
        values["node"] = node_context.as_markdown(context, told, with_task=False).strip()
        room -= len(values["node"]) - len(node)
        values["earlier_ideas"] = node_context.listed_ideas(earlier, min(room, PROMPT_CHARS))
        return prompts.substitute(template, values)

    def _ask(self, messages: list[Message], context: NodeContext) -> Answer:
        # Nodes of one run must not get the same ideas for the same reason: the seed.
        digest = hashlib.sha256(f"{context.seed}:{context.node_id}:{context.round}".encode())
        seed = int.from_bytes(digest.digest()[:4], "big") >> 1
        try:
            return self._client.ask(Request(messages, seed=seed), unwanted=once_set(context.cancel))
        except ChatError as error:
            stop_if_cancelled(context)
            raise IdeaSourceError(f"no ideas: {error.message}") from None

    def _log(self, messages: list[Message], context: NodeContext) -> None:
        parts = [f"## {message.role}\n\n{message.content.strip()}\n" for message in messages]
        path = context.scratch / "llm.log"
        transcript.write(path, "\n".join(parts), *keys.secrets_for(self._config.endpoint))

    def _why(self, answer: Answer, context: NodeContext) -> str:
        why = "its reply has no line `## IDEA: <title>` with an idea below it"
        if answer.finish_reason == "length":
            limit = self._config.endpoint.max_tokens
            why = f"its reply was cut off at {limit} tokens; raise `max_tokens`"
        return (
            f"no ideas from {self._config.endpoint.model}: {why} (log: {context.scratch}/llm.log)"
        )


def parse(reply: str, *, cut_off: bool = False) -> list[str]:
    """The ideas of a reply as Markdown files; a title without a text is none.

    `cut_off`: the reply ended at the token limit, so its last idea is not whole.
    """
    lines = reply.split("\n")
    inside = _fenced_lines(reply)
    starts = [
        index
        for index, line in enumerate(lines)
        if _HEADING.fullmatch(line) and index not in inside
    ]
    ideas: list[str] = []
    for start, end in itertools.pairwise([*starts, len(lines)]):
        body = "\n".join(lines[start + 1 : end]).strip("\r\n ")
        heading = _HEADING.fullmatch(lines[start])
        if body and heading and not (cut_off and end == len(lines)):
            ideas.append(f"# {heading[1]}\n\n{body}\n")
    return ideas


def _fenced_lines(reply: str) -> set[int]:
    """Lines inside code blocks, where a heading is code and not a heading."""
    found: set[int] = set()
    for block in blocks(reply):
        found.update(range(block.line, block.line + block.body.count("\n") + 2))
    return found
