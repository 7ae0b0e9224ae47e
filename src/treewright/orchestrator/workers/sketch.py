"""`sketch`: a language model proposes a proof in `have` steps; Lean and `micro` fill them in.

The steps are `sorry`s in the model's script. Steps that a quick tactic closes are filled in; a
script without open steps is the claim. Lemmas are requested for the other steps, if there is a
marketplace: a completed lemma closes its step, and steps that stay open are the result's subgoals
and tickets.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.errors import UsageError
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.async_session import AsyncLeanSession
from treewright.lean.session.errors import DEFAULT_CHECK_SECONDS
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.inputs import check_script, check_script_in
from treewright.lean.sorries import Sorry, from_check, replace
from treewright.lean.verify.restrictions import find_escapes
from treewright.llm import keys
from treewright.llm.chat import Answer, Message, Request
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError, Endpoint, describe, installed
from treewright.orchestrator.goals import statements
from treewright.orchestrator.marketplace.market import Marketplace
from treewright.orchestrator.marketplace.tickets import Ticket, TicketStatus
from treewright.orchestrator.strategies import Strategy
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers import meter
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.micro import MicroWorker
from treewright.orchestrator.workers.worker import (
    EXCEPTION,
    UNAVAILABLE,
    Availability,
    Hole,
    NoProof,
    check_goal,
    failed,
    failed_by,
    interruption,
)

_BLOCK = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)
_HEADING = re.compile(r"^\s*(?:theorem|lemma|example)\b.*?:=\s*by\b[ \t]*\n?", re.DOTALL)
URL_VARIABLE = "TREEWRIGHT_SKETCH_URL"
MODEL_VARIABLE = "TREEWRIGHT_SKETCH_MODEL"
KEY_VARIABLE = "TREEWRIGHT_SKETCH_KEY"
_MAX_TOKENS = 1024
_TRIES = 3
PROMPT = """\
Prove this Lean 4 goal (core Lean, no Mathlib):

{goal}

Answer with one fenced code block that holds only the tactic script, as it would stand after `by`.
Break the proof into steps `have name : statement := by sorry` where you are not sure of a step's
proof; the last line closes the goal from these steps.
"""


def _endpoint_of_environment() -> Endpoint | None:
    """Return the endpoint that the three variables describe; None if they name none."""
    url, model, key = (
        os.environ.get(name, "").strip() for name in (URL_VARIABLE, MODEL_VARIABLE, KEY_VARIABLE)
    )
    if not (url and model):
        return None
    variable = KEY_VARIABLE if key else None
    return Endpoint(base_url=url, model=model, api_key_env=variable, max_tokens=_MAX_TOKENS)


class SketchWorker:
    """Asks a model for a sketch; the time limit holds for the answer and again for filling in.

    Args:
        lean: Lends the session.
        endpoint: The model; by default the one that the environment names.
        ledger: The ledger with the marketplace for lemmas; None requests none.
    """

    strategy = StrategyType.SKETCH

    def __init__(
        self,
        lean: LeanAccess,
        endpoint: Endpoint | None = None,
        ledger: Path | None = None,
    ) -> None:
        self._lean = lean
        self._endpoint = endpoint or _endpoint_of_environment()
        self._ledger = ledger
        self._filler = MicroWorker(lean)

    def probe(self) -> Availability:
        """Return whether an endpoint and its key are configured; nothing is asked."""
        if self._endpoint is None:
            return Availability(
                False,
                "no chat endpoint is configured",
                f"set {URL_VARIABLE} and {MODEL_VARIABLE}",
            )
        if not installed():
            return Availability(False, "httpx is not installed", "pip install 'treewright[llm]'")
        try:
            how = keys.describe_key(self._endpoint)
        except ChatError as error:
            return Availability(False, str(error), "see docs/llm.md")
        return Availability(True, f"asks {describe(self._endpoint)} {how}, when it is used")

    async def run(self, goal: Goal, timeout: float) -> Result:
        """Ask for a sketch and fill it in; open steps are the result's subgoals."""
        started = time.monotonic()
        kind = UNAVAILABLE
        try:
            script, answer = await self._propose(goal, timeout)
            async with self._lean.session() as session:
                kind = EXCEPTION
                async with asyncio.timeout(timeout):
                    text, open_ends, tickets = await self._fill(session, goal, script)
        except ChatError as error:
            if error.code == "llm_timeout":
                return failed(self.strategy, "timeout", started)
            return failed(self.strategy, str(error), started, UNAVAILABLE)
        except Exception as error:
            return failed_by(error, self.strategy, started, kind)
        seconds = time.monotonic() - started
        metadata: dict[str, Any] = {"sketch": script, "usage": msgspec.to_builtins(answer.usage)}
        if not open_ends:
            tactics = (text,) if goal.place is not None else tuple(text.splitlines())
            return Result(True, self.strategy, tactics, seconds, metadata=metadata)
        subgoals = tuple(sorry.goal.pretty for sorry in open_ends)
        metadata["tickets"] = tickets
        error = f"{len(subgoals)} steps of the sketch are open"
        return Result(False, self.strategy, (), seconds, subgoals, error, metadata)

    async def _propose(self, goal: Goal, timeout: float) -> tuple[str, Answer]:
        assert self._endpoint is not None
        if goal.place is not None and len(goal.place.holes) != 1:
            raise NoProof("a sketch is for one hole")
        question = [Message("user", PROMPT.format(goal=goal.shown))]
        request = Request(question, timeout_seconds=timeout, tries=_TRIES)
        answer = await ChatClient(self._endpoint).ask_async(request, waiting=meter.waiting)
        meter.add_usage(answer.usage)  # the answer is paid for in any case
        script = script_of(answer.text)
        if not script:
            raise NoProof("the model's answer has no script")
        if found := [escape for escape in find_escapes(script) if escape.word != "sorry"]:
            raise NoProof(f"the model's script contains {found[0].word}")
        return script, answer

    async def _fill(
        self, session: AsyncLeanSession, goal: Goal, script: str
    ) -> tuple[str, list[Sorry], list[str]]:
        """Return the script with filled steps, the steps still open, and their tickets."""
        await check_goal(self._lean, session, goal)
        text, start, tail, column = _placed(goal, script)
        await _check_script(session, goal, script, text, start, tail)
        unfilled = 0
        tickets: list[str] = []
        while True:
            result = await session.check(
                text,
                sorries=True,
                until=goal.place.declaration if goal.place is not None else "",
                timeout=DEFAULT_CHECK_SECONDS,
            )
            if not isinstance(result, CheckResult):
                raise interruption(result)
            if result.errors or result.stopped:
                detail = result.errors[0].text if result.errors else result.stopped
                raise NoProof(f"the sketch does not elaborate: {detail.splitlines()[0]}")
            end = len(text.encode()) - tail
            inside = [s for s in from_check(text, result) if start <= s.start < end]
            waiting = inside[unfilled:]
            if not waiting:
                found = _taken_back(text.encode()[start:end].decode(), column)
                # Checked again, because the filled steps are new text.
                await _check_script(session, goal, found, text, start, tail)
                return found, inside, tickets
            # From the front, so that the open steps come before the untried ones.
            deadline = time.monotonic() + 60
            steps = await self._filler.close_hole(session, Hole(waiting[0].states), goal, deadline)
            if steps is not None:
                text = replace(text, waiting[0], "\n".join(steps))
                continue
            ticket = await self._request(goal, waiting[0], unfilled + 1)
            if ticket is not None and (proof := _proof_in(ticket, waiting[0])):
                candidate = replace(text, waiting[0], proof)
                filled = await session.check(candidate, timeout=DEFAULT_CHECK_SECONDS)
                if isinstance(filled, CheckResult) and not (filled.errors or filled.stopped):
                    text = candidate
                    continue
            unfilled += 1
            tickets += [ticket.ticket_id] if ticket is not None else []

    async def _request(self, goal: Goal, step: Sorry, number: int) -> Ticket | None:
        """Request a lemma for a step, and return its ticket; None without a marketplace."""
        if self._ledger is None:
            return None
        name = re.sub(r"[^A-Za-z0-9]+", "_", goal.id)
        with Marketplace(self._ledger) as marketplace:
            ticket_id = await marketplace.request_lemma(
                goal=step.goal.target,
                context=_context(step),
                suggested_name=f"{'goal_' if name[:1].isdigit() else ''}{name}_step{number}",
                priority=goal.estimated_difficulty,
                imports=goal.imports,
                preamble=goal.preamble,
                requested_by="sketch",
            )
            return await marketplace.get_ticket(ticket_id)


async def _check_script(
    session: AsyncLeanSession, goal: Goal, script: str, text: str, start: int, tail: int
) -> None:
    """Raise `NoProof` if a model's text contains anything but tactics, such as a command."""

    def check(parser: HostSession) -> None:
        if goal.place is None:
            check_script(parser, script, after=statements.surroundings(goal))
        else:
            check_script_in(parser, text, start, len(text.encode()) - tail)

    try:
        await session.run(check)
    except UsageError as error:
        raise NoProof(str(error)) from None


def _context(step: Sorry) -> list[str]:
    return [f"{h.name} : {h.type}" for h in step.goal.hypotheses]


def _proof_in(ticket: Ticket, step: Sorry) -> str:
    """Return the tactic of a completed ticket's proof, or '' if it does not fit the step.

    A lemma that was requested with other hypothesis names does not fit, nor does a proof that
    declares further lemmas.
    """
    if ticket.status is not TicketStatus.COMPLETED or list(ticket.context) != _context(step):
        return ""
    _, head, proof = (ticket.completed_proof or "").partition(f"theorem {ticket.statement} :=")
    return f"exact {proof.strip()}" if head else ""


def script_of(answer: str) -> str:
    """Return the tactic script in a model's answer: its first code block without a heading."""
    block = _BLOCK.search(answer)
    text = block[1] if block else ""
    lines = _HEADING.sub("", text).expandtabs(2).rstrip().splitlines()
    while lines and not lines[0].strip():
        lines.pop(0)
    if lines and lines[0].strip() == "by":
        lines.pop(0)
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    cut = min(indents, default=0)
    return "\n".join(line[cut:] for line in lines)


def _placed(goal: Goal, script: str) -> tuple[str, int, int, int]:
    """Return a whole text with the script in it, the bytes before and after it, its column."""
    if goal.place is None:
        # The script may use the names of the context.
        script = "\n".join([*statements.introductions(goal), script])
        before, _, after = statements.statement_file(goal).rpartition("sorry")
        laid_out = script.replace("\n", "\n  ")
        return f"{before}{laid_out}{after}", len(before.encode()), len(after.encode()), 2
    (hole,) = goal.place.holes
    if hole not in goal.place.tactic_holes:
        raise NoProof("a sketch is for a tactic block")
    source = goal.place.source.encode()
    column = len(source[: hole[0]].decode().rpartition("\n")[2])
    _, text = statements.fill_holes(goal.place, [script])
    return text, hole[0], len(source) - hole[1], column


def _taken_back(text: str, column: int) -> str:
    return "\n".join(
        line if number == 0 else line.removeprefix(" " * column)
        for number, line in enumerate(text.rstrip().splitlines())
    )


strategy = Strategy(
    "a language model proposes `have` steps, micro fills them in",
    6.0,
    lambda tools: SketchWorker(tools.lean, ledger=tools.ledger),
)
