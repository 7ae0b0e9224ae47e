"""The lemma marketplace: requesters ask for lemmas, suppliers prove them.

A ticket is completed only by a proof of its statement that the replay check accepts. A request for
a statement that has a ticket returns this ticket.
"""

from __future__ import annotations

import asyncio
import re
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol, Self

from treewright.kernel.errors import TreewrightError, UsageError, require_several
from treewright.lean.choice import open_project
from treewright.lean.hosts.host import Host
from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.processes import LeanProcesses
from treewright.lean.session import inputs
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.inputs import header_of
from treewright.lean.verify.verdict import Verdict
from treewright.orchestrator.ledger.schema import DEFAULT_PATH
from treewright.orchestrator.marketplace.tickets import (
    NewTicket,
    Ticket,
    TicketStatus,
    TicketTable,
    hypotheses_of,
    rank,
)
from treewright.orchestrator.types import DEFAULT_IMPORTS
from treewright.premises import terms
from treewright.premises.index import PremiseIndex

__all__ = [
    "Marketplace",
    "ProofRejected",
    "ProofUnchecked",
    "Ticket",
    "TicketStatus",
    "TicketTaken",
]

DEFAULT_LEASE_SECONDS = 600.0
LEAST_SIMILARITY = 0.3
_HINTS = 5
_DECLARATION = re.compile(
    r"\s*(?:@\[[^\]]*\]\s*)?"
    r"(?:theorem|lemma|private|protected|noncomputable|namespace|section|variable|def|universe|"
    r"instance|abbrev|axiom|opaque|inductive|structure|class|mutual)\b"
)
_COMMENT = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|/-.*?-/)", re.DOTALL)
_SETTING = re.compile(r"\s*(?:open|set_option)\b[^\n]*?(?:\bin\b|\n|$)")
"""May stand before a script and before declarations; the text after it decides."""


class ProofRejected(TreewrightError):
    """The replay check refused the proof; the ticket is unchanged."""

    def __init__(self, ticket: Ticket, verdict: Verdict) -> None:
        super().__init__(
            f"the proof of {ticket.name} was not accepted ({verdict.reason}): "
            f"{next(iter(verdict.detail.splitlines()), '')}"
        )
        self.verdict = verdict


class ProofUnchecked(TreewrightError):
    """The replay check failed twice without a verdict; the proof is neither accepted nor kept."""


class TicketTaken(TreewrightError):
    """Another supplier holds the ticket or has completed it."""


class Checker(Protocol):
    """Decides whether a candidate text proves the open declarations of the original text."""

    def text(
        self, original: str, candidate: str, targets: Sequence[str], *, declarations: bool = False
    ) -> Verdict: ...


class Marketplace:
    """The tickets in a ledger's file, which several processes and tasks may use at once.

    Args:
        path: The ledger.
        checker: Checks proofs; by default a replay check that is started when it is needed.
        parser: Parses statements and scripts; by default a session that is started when needed.
        premises: An index from which new tickets get the names of similar declarations.
        clock: Returns the time; tests give their own.
        lease_seconds: How long a claim lasts.
        open_host: Opens the Lean for the default checker and parser.
    """

    def __init__(
        self,
        path: Path | str = DEFAULT_PATH,
        *,
        checker: Checker | None = None,
        parser: HostSession | None = None,
        premises: PremiseIndex | None = None,
        clock: Callable[[], float] = time.time,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
        open_host: Callable[[], Host] | None = None,
    ) -> None:
        self._table = TicketTable(Path(path))
        self._premises = premises
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._checker = checker
        self._parser = parser
        self._open_host = open_host or ensure_installed
        self._lean: LeanProcesses | None = None
        self._checking = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the table, and end the Lean processes that the marketplace started."""
        self._table.close()
        if self._lean is not None:
            self._lean.close()

    # -- asking ---------------------------------------------------------------------------

    async def request_lemma(
        self,
        goal: str,
        context: Sequence[str] = (),
        suggested_name: str = "",
        constraints: Sequence[str] = (),
        priority: float = 0.5,
        *,
        imports: Sequence[str] = DEFAULT_IMPORTS,
        preamble: str = "",
        requested_by: str = "",
    ) -> str:
        """Return the id of the ticket for this statement; create it if there is none.

        Args:
            goal: A Lean term of type `Prop`.
            context: Entries with a colon are hypotheses, in order; other entries are keywords.
            suggested_name: The name of the lemma; by default `lemma_<id>`.
            constraints: Notes for the supplier. They are not checked, but part of the identity.
            priority: From 0 to 1; urgent tickets are offered first.
            imports: The modules that the lemma may use.
            preamble: Commands in front of the lemma.
            requested_by: The name of the requester.

        Raises:
            UsageError: A part of the request is malformed.
        """
        require_several(context=context, constraints=constraints, imports=imports)
        if not goal.strip():
            raise UsageError("a lemma needs a statement")
        if not 0.0 <= priority <= 1.0:
            raise UsageError(f"a priority is between 0 and 1, not {priority:g}")
        if suggested_name.strip():
            inputs.identifier(suggested_name.strip())
        header_of(imports)
        inputs.check_closed(goal, "the statement")
        for hypothesis in hypotheses_of(context):
            inputs.check_closed(hypothesis, "the hypothesis")
        premises = []
        if self._premises is not None:  # the names help the supplier
            premises = await asyncio.to_thread(self._premises.lexical, goal, _HINTS)
        new = NewTicket(
            goal.strip(),
            tuple(context),
            suggested_name.strip(),
            tuple(constraints),
            priority,
            tuple(imports),
            preamble,
            tuple(premise.name for premise in premises),
            requested_by,
        )
        return await asyncio.to_thread(self._table.request, new, self._clock())

    async def search_similar(
        self,
        goal: str,
        limit: int = 5,
        *,
        context: Sequence[str] = (),
        imports: Sequence[str] = DEFAULT_IMPORTS,
        preamble: str = "",
        least: float = LEAST_SIMILARITY,
    ) -> list[Ticket]:
        """Return similar tickets, the most similar first, completed ones before others.

        Only a ticket of the same statement, up to the names of bound variables, has a similarity
        of 1 and includes its proof. Other completed tickets have the status `similar`.
        """
        require_several(context=context, imports=imports)
        tickets = await asyncio.to_thread(self._table.all)
        asked = NewTicket(goal.strip(), tuple(context), imports=tuple(imports), preamble=preamble)
        meaning = asked.meaning
        scores = [similarity(asked, meaning, ticket) for ticket in tickets]
        return rank(tickets, scores, limit, least)

    async def get_ticket(self, ticket_id: str) -> Ticket:
        """Return a ticket; raise UsageError if there is none with this id."""
        return await asyncio.to_thread(self._table.get, ticket_id)

    async def get_tickets(self) -> list[Ticket]:
        """Return all tickets, the most urgent first."""
        return await asyncio.to_thread(self._table.all)

    # -- supplying ------------------------------------------------------------------------

    async def get_open_tickets(self, limit: int = 10) -> list[Ticket]:
        """Return the tickets that can be claimed now, the most urgent first."""
        return await asyncio.to_thread(self._table.free, limit, self._clock())

    async def claim_ticket(
        self, ticket_id: str, who: str, *, lease_seconds: float | None = None
    ) -> bool:
        """Claim a ticket; return whether the claim succeeded.

        A claim lasts until it is completed, released or expired. An expired claim can be taken
        over by another supplier.
        """
        await self.get_ticket(ticket_id)  # raises an error for an unknown ticket
        now = self._clock()
        expires = now + (lease_seconds or self._lease_seconds)
        return await asyncio.to_thread(
            self._table.claim, ticket_id, _require_name(who), now, expires
        )

    async def renew_claim(self, ticket_id: str, who: str) -> bool:
        """Extend a claim by a full lease; return False if it has expired or was taken over."""
        now = self._clock()
        expires = now + self._lease_seconds
        return await asyncio.to_thread(self._table.renew, ticket_id, who, now, expires)

    async def release_ticket(self, ticket_id: str, who: str) -> bool:
        """Give a claim back; return False if the ticket is not claimed by this supplier."""
        return await asyncio.to_thread(self._table.release, ticket_id, who, self._clock())

    async def complete_ticket(
        self, ticket_id: str, proof: str, who: str, *, script_only: bool = False
    ) -> Ticket:
        """Check a proof and complete the ticket with it.

        Args:
            ticket_id: The ticket.
            proof: A text that declares the lemma under its name, or a tactic script.
            who: The name of the supplier.
            script_only: Accept a tactic script only, for proofs that no human has read.

        Raises:
            ProofRejected: The replay check refused the proof.
            ProofUnchecked: The replay check gave no verdict.
            TicketTaken: Another supplier holds the ticket or has completed it.
        """
        ticket = await self.get_ticket(ticket_id)
        self._check_holder(ticket, _require_name(who))
        given = _without_heading(ticket, proof)
        lemma = lemma_text(ticket, given)
        script = given if script_only or not _declares(given) else None
        verdict = await asyncio.to_thread(self._check, ticket, lemma, script)
        if verdict.is_fault:
            verdict = await asyncio.to_thread(self._check, ticket, lemma, script)
        if verdict.is_fault:
            raise ProofUnchecked(
                f"the proof of {ticket.name} could not be checked ({verdict.reason}: "
                f"{verdict.detail}); hand it in again"
            )
        if not verdict.proved:
            rejected = ProofRejected(ticket, verdict)
            await asyncio.to_thread(self._table.note_error, ticket_id, str(rejected), self._clock())
            raise rejected
        done = await asyncio.to_thread(self._table.complete, ticket_id, lemma, who, self._clock())
        ticket = await self.get_ticket(ticket_id)
        if not done:
            self._check_holder(ticket, who)
        return ticket

    def _check_holder(self, ticket: Ticket, who: str) -> None:
        if ticket.status is TicketStatus.COMPLETED:
            raise TicketTaken(f"ticket {ticket.ticket_id} is completed by {ticket.completed_by}")
        held = ticket.status is TicketStatus.CLAIMED and ticket.claimed_by != who
        if held and (ticket.claim_expires or 0.0) > self._clock():
            raise TicketTaken(
                f"ticket {ticket.ticket_id} is claimed by {ticket.claimed_by}; wait until the "
                "claim is completed, released or expired"
            )

    def _own_lean(self) -> LeanProcesses:
        """Return the Lean processes of the marketplace itself, with the Lake project around it."""
        if self._lean is None:
            host = self._open_host()
            project = open_project(Path.cwd()) if host.backend == "wasm" else None
            self._lean = LeanProcesses(host, project)
        return self._lean

    def _check(self, ticket: Ticket, lemma: str, script: str | None) -> Verdict:
        """Return the verdict on a lemma; `script` is its proof if that has to be tactics."""
        head = heading(ticket)
        original = f"{head}{lemma_text(ticket, 'sorry')}"
        with self._checking:
            parser = self._parser
            if parser is None:
                parser = self._own_lean().kept_session()
            # Any program may have written the row: Lean's parser checks that it is one theorem.
            inputs.check_theorem(parser, ticket.theorem, after=head)
            if script is not None:
                try:
                    inputs.check_script(parser, script, after=head)
                except UsageError as refused:
                    return Verdict("error", str(refused))
            checker = self._checker
            if checker is None:
                checker = self._own_lean().replayer
            return checker.text(
                original, f"{head}{lemma}", [ticket.name], declarations=script is None
            )


def _require_name(who: str) -> str:
    if not who.strip():
        raise UsageError("say who supplies it")
    return who


def heading(ticket: Ticket) -> str:
    """Return the text in front of the lemma: imports and preamble."""
    return header_of(ticket.imports) + (f"{ticket.preamble.rstrip()}\n" if ticket.preamble else "")


def _without_heading(ticket: Ticket, proof: str) -> str:
    """Return a proof without the heading that `tickets show` prints."""
    head = heading(ticket).strip()
    if head and proof.lstrip().startswith(head):
        proof = proof.lstrip().removeprefix(head)
    return textwrap.dedent(proof.expandtabs()).strip("\n")


def lemma_text(ticket: Ticket, proof: str) -> str:
    """Return the lemma with its proof, which is a script or declares the lemma itself."""
    if _declares(proof):
        return textwrap.dedent(proof).strip("\n") + "\n"
    return f"theorem {ticket.statement} := by\n{textwrap.indent(proof.strip(chr(10)), '  ')}\n"


def _declares(proof: str) -> bool:
    """Return whether a proof begins with a declaration instead of a tactic."""
    at = 0
    while opening := _COMMENT.match(proof, at) or _SETTING.match(proof, at):
        at = opening.end()
    return _DECLARATION.match(proof, at) is not None


@lru_cache(maxsize=100_000)
def _terms(text: str) -> dict[str, float]:
    return terms.of_query(text)


def similarity(asked: NewTicket, meaning: tuple[str, ...], ticket: Ticket) -> float:
    """Return 1 for the same statement, else the share of common weighted terms, below 1."""
    if meaning == ticket.meaning:
        return 1.0
    hypotheses, goal = hypotheses_of(asked.context), asked.goal
    first = _terms("\n".join([*hypotheses, f"⊢ {goal}"]))
    second = _terms("\n".join([*ticket.context, f"⊢ {ticket.goal}"]))
    every = first.keys() | second.keys()
    both = sum(min(first.get(term, 0.0), second.get(term, 0.0)) for term in every)
    either = sum(max(first.get(term, 0.0), second.get(term, 0.0)) for term in every)
    return min(both / either, 0.999) if either else 0.0
