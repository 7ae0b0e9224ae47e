"""The idea source `llm`: a chat model that writes each idea below a heading.

The model is asked again, with the reason, if its reply has no such headings. Ideas are never
guessed from prose, because the run would then test ideas that the model did not propose.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import re
from collections.abc import Iterable

import msgspec

from treewright.kernel.http_client import when_set
from treewright.kernel.procs.capped_log import with_log
from treewright.llm.chat import Answer, Message, Request
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError
from treewright.llm.usage import Usage
from treewright.tree.agents import prompts, transcript
from treewright.tree.agents.prompts import PromptTooLong, show_files
from treewright.tree.config import EndpointConfig, LlmIdeas
from treewright.tree.ideas.idea_source import (
    MAX_ATTEMPTS,
    GeneratorFailure,
    Idea,
    IdeaSourceError,
    NodeContext,
    Proposals,
    stop_if_cancelled,
)
from treewright.tree.ideas.idea_text import blocks, key
from treewright.tree.ideas.node_description import (
    PROMPT_CHARS,
    find_ideas_not_to_repeat,
    list_ideas,
    render_markdown,
)
from treewright.tree.records import usage_log

_HEADING_STYLES = (
    re.compile(r"(?P<level>##) IDEA: *(?P<title>\S.*)"),
    re.compile(
        r"(?:\d+[.)] +|[-*] +)?(?P<level>#{0,6}) *(?:\*\*|__)? *IDEA *#?\d* *[:.)\u2013\u2014-]+ *"
        r"(?P<title>\S.*)",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<level>#{1,6}) *(?:\*\*|__)? *\d+ *[.):] *(?P<title>\S.*)"),
    re.compile(r"(?P<level>)\d+[.)] +\*\*(?P<title>[^*]+)\*\*[:.]?(?: *(?P<rest>\S.*))?"),
    re.compile(r"(?P<level>)\*\*\d+[.)] *(?P<title>[^*]+)\*\*[:.]?(?: *(?P<rest>\S.*))?"),
)
"""Forms of headings: first the requested one, then forms that models use instead: the word
"Idea", a numbered heading, a numbered title in bold."""
_MARKDOWN = frozenset({"", "markdown", "md", "text"})
_REMINDER = (
    "Your reply could not be used: {why}. Start every idea with a line `## IDEA: <title>` and "
    "write the idea below it. Send all ideas again."
)


class LlmSource:
    """Asks a chat model for ideas."""

    def __init__(self, config: LlmIdeas) -> None:
        self._config = config

    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        """Ask for ideas, and again with the reason if a reply is not usable."""
        messages = [Message("user", self._prompt(context))]
        known = frozenset(taken)
        usage = Usage()
        new: list[str] = []
        endpoint = self._endpoint(context)
        client = ChatClient(endpoint)
        try:
            for attempt in range(1, MAX_ATTEMPTS + 1):
                answer = self._ask(client, messages, context)
                usage += answer.usage
                name = usage_log.of_expansion(context.round)
                usage_log.add(context.scratch.parent, answer.usage, name)
                messages.append(Message("assistant", answer.text))
                texts = parse_ideas(answer.text, cut_off=answer.finish_reason == "length")
                new = [text for text in texts if key(text) not in known]
                if new or (texts and attempt == MAX_ATTEMPTS):
                    break
                why = "its reply has no line `## IDEA: <title>` with an idea below it"
                if texts:
                    why = "every idea in it was tried before"
                elif answer.finish_reason == "length":
                    limit = self._config.endpoint.max_tokens
                    why = f"its reply was cut off at {limit} tokens; raise `max_tokens`"
                if attempt == MAX_ATTEMPTS:
                    log = context.scratch / "llm.log"
                    message = f"no ideas from {endpoint.model}: {why}"
                    raise GeneratorFailure(with_log(message, answer.text, log), usage)
                messages.append(Message("user", _REMINDER.format(why=why)))
        finally:
            transcript.write_messages(context.scratch / "llm.log", messages, self._config.endpoint)
        origin = f"llm:{endpoint.model}"
        return Proposals([Idea(text, origin) for text in new[: context.wanted]], usage)

    def _prompt(self, context: NodeContext) -> str:
        template = prompts.load_template("ideas", self._config.prompt, context.repo)
        earlier = find_ideas_not_to_repeat(context)
        node = render_markdown(context, 0, with_task=False).strip()
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
                # Editable files may use the whole room; without editable blocks, files use half.
                about = "\n".join(idea.text for idea in earlier)
                view, most = context.view, room if context.view.editable_blocks else room // 2
                values["repository"] = show_files(context.checkout, about, most, view)
                room -= len(values["repository"])
        except PromptTooLong as problem:
            raise GeneratorFailure(
                f"the prompt for ideas is longer than {self._config.prompt_tokens} tokens: "
                f"{problem}; raise `prompt_tokens`"
            ) from None
        told = min(room // 2, PROMPT_CHARS)
        values["node"] = render_markdown(context, told, with_task=False).strip()
        room -= len(values["node"]) - len(node)
        values["earlier_ideas"] = list_ideas(earlier, min(room, PROMPT_CHARS))
        return prompts.substitute(template, values)

    def _endpoint(self, context: NodeContext) -> EndpointConfig:
        """Return the endpoint with one of the models, drawn by weight for this expansion."""
        endpoint, weights = self._config.endpoint, self._config.model_weights
        if not weights:
            return endpoint
        drawn = random.Random(f"{context.seed}:{context.node_id}:{context.round}:model")  # noqa: S311
        (model,) = drawn.choices(list(weights), list(weights.values()))
        return msgspec.structs.replace(endpoint, model=model)

    def _ask(self, client: ChatClient, messages: list[Message], context: NodeContext) -> Answer:
        # Each node gets another seed, because the same seed could give the same ideas.
        digest = hashlib.sha256(f"{context.seed}:{context.node_id}:{context.round}".encode())
        seed = int.from_bytes(digest.digest()[:4], "big") >> 1
        try:
            return client.ask(Request(messages, seed=seed), unwanted=when_set(context.cancel))
        except ChatError as error:
            stop_if_cancelled(context)
            raise IdeaSourceError(f"no ideas: {error.message}") from None


def parse_ideas(reply: str, *, cut_off: bool = False) -> list[str]:
    """Return the ideas of a reply as Markdown files, without titles that have no text.

    Args:
        reply: The reply. Only the first heading style that gives an idea is used.
        cut_off: The reply ended at the token limit, so its last idea is dropped as incomplete.
    """
    for text in (reply, _unfenced(reply)):
        for style in _HEADING_STYLES:
            if ideas := _parsed(text, style, cut_off):
                return ideas
    return []


def _parsed(reply: str, style: re.Pattern[str], cut_off: bool) -> list[str]:
    lines = reply.split("\n")
    inside = {  # in code blocks `#` is not a heading
        index
        for block in blocks(reply)
        for index in range(block.line, block.line + block.body.count("\n") + 2)
    }
    found = {
        index: heading
        for index, line in enumerate(lines)
        if index not in inside and (heading := style.fullmatch(line.rstrip()))
    }
    if not found:
        return []
    # A heading of another level belongs to the text of an idea.
    level = next(iter(found.values()))["level"]
    starts = [index for index, heading in found.items() if heading["level"] == level]
    ideas: list[str] = []
    for start, end in itertools.pairwise([*starts, len(lines)]):
        heading = found[start]
        rest = heading.groupdict().get("rest") or ""
        body = "\n".join([rest, *lines[start + 1 : end]]).strip("\r\n ")
        title = heading["title"].strip("*_`# :")
        if title and body and not (cut_off and end == len(lines)):
            ideas.append(f"# {title}\n\n{body}\n")
    return ideas


def _unfenced(reply: str) -> str:
    """Return the reply without a fence around all of it, else the text of its Markdown blocks."""
    lines = reply.strip().split("\n")
    first, last = lines[0].strip(), lines[-1].strip()
    if len(lines) > 2 and last == "```" and first[:3] == last and first[3:].lower() in _MARKDOWN:
        return "\n".join(lines[1:-1])
    return "\n".join(block.body for block in blocks(reply) if block.info.lower() in _MARKDOWN)
