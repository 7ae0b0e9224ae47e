"""Tickets for lemmas, and the table `tickets` of the ledger's file.

Every change is one SQL statement with its conditions, so any number of processes may share the
table. A claim is a lease: it ends when its time is over.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text import jsontext
from treewright.lean.session.inputs import Theorem
from treewright.orchestrator.goals import normal_form
from treewright.orchestrator.ledger.schema import open_ledger, readable_errors
from treewright.orchestrator.types import DEFAULT_IMPORTS, Goal

_COLUMNS = (
    "ticket_id, goal, context, suggested_name, constraints, imports, preamble, hints, priority, "
    "status, requested_by, requests, claimed_by, claim_expires, completed_proof, completed_by, "
    "last_error, created, updated"
)
_LISTS = ("context", "constraints", "imports", "hints")
_FREE = "(status = 'open' OR (status = 'claimed' AND claim_expires <= :now))"
_BY_URGENCY = "ORDER BY priority DESC, created, ticket_id"
_CLAIM = f"""
UPDATE tickets SET status = 'claimed', claimed_by = :who, claim_expires = :expires, updated = :now
WHERE ticket_id = :id AND {_FREE}
"""  # noqa: S608 - made of our own text
_COMPLETE = f"""
UPDATE tickets SET status = 'completed', completed_proof = :proof, completed_by = :who,
    claimed_by = NULL, claim_expires = NULL, last_error = NULL, updated = :now
WHERE ticket_id = :id AND ({_FREE} OR (status = 'claimed' AND claimed_by = :who))
"""  # noqa: S608


class TicketStatus(StrEnum):
    """The status of a ticket.

    `SIMILAR` is only a status of search results: a completed ticket of another statement, so that
    its proof is no proof of the statement in the search.
    """

    OPEN = "open"
    CLAIMED = "claimed"
    COMPLETED = "completed"
    SIMILAR = "similar"


STATES = (TicketStatus.OPEN, TicketStatus.CLAIMED, TicketStatus.COMPLETED)


class Ticket(msgspec.Struct, frozen=True):
    """A requested lemma.

    `goal` is a Lean term. An entry of `context` with a colon is a hypothesis in front of it;
    other entries are keywords. `constraints` are notes for the supplier. `similarity` is only
    set by a search: 1 means the same statement.
    """

    ticket_id: str
    goal: str
    context: tuple[str, ...]
    suggested_name: str
    constraints: tuple[str, ...]
    imports: tuple[str, ...]
    preamble: str
    hints: tuple[str, ...]
    priority: float
    status: TicketStatus
    requested_by: str
    requests: int
    claimed_by: str | None
    claim_expires: float | None
    completed_proof: str | None
    completed_by: str | None
    last_error: str | None
    created: float
    updated: float
    similarity: float | None = None

    @property
    def hypotheses(self) -> tuple[str, ...]:
        """The entries of the context that are hypotheses."""
        return hypotheses_of(self.context)

    @property
    def meaning(self) -> tuple[str, ...]:
        """A key that is equal only for statements with the same meaning."""
        return _meaning(self.goal, self.context, self.imports, self.preamble)

    @property
    def name(self) -> str:
        """The name of the lemma."""
        return self.suggested_name or f"lemma_{self.ticket_id}"

    @property
    def theorem(self) -> Theorem:
        """The lemma as the theorem to prove."""
        return Theorem(self.name, self.goal, self.hypotheses)

    @property
    def statement(self) -> str:
        """The text after `theorem`: `name (h : p) … : goal`."""
        return self.theorem.heading


def hypotheses_of(context: Sequence[str]) -> tuple[str, ...]:
    """Return the entries of a context that are hypotheses; the others are keywords."""
    return tuple(entry for entry in context if ":" in entry)


def _meaning(
    goal: str, context: Sequence[str], imports: Sequence[str], preamble: str
) -> tuple[str, ...]:
    """Return a key that is equal only for statements with the same meaning."""
    asked = Goal("", goal, hypotheses_of(context), imports=tuple(imports), preamble=preamble)
    return (normal_form.hash_goal(asked), *sorted(set(imports)))


class NewTicket(msgspec.Struct, frozen=True):
    """A request."""

    goal: str
    context: tuple[str, ...] = ()
    suggested_name: str = ""
    constraints: tuple[str, ...] = ()
    priority: float = 0.5
    imports: tuple[str, ...] = DEFAULT_IMPORTS
    preamble: str = ""
    hints: tuple[str, ...] = ()
    requested_by: str = ""

    @property
    def meaning(self) -> tuple[str, ...]:
        """A key that is equal only for statements with the same meaning."""
        return _meaning(self.goal, self.context, self.imports, self.preamble)

    @property
    def ticket_id(self) -> str:
        """The same for every request of the same statement under the same constraints."""
        identity = [
            *self.meaning,
            "",
            *sorted(set(self.constraints)),
        ]
        return hashlib.sha256("\n".join(identity).encode()).hexdigest()[:12]


class TicketTable:
    """The table, for several threads. Callers give the time as `now`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection = open_ledger(path)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def _write(self, sql: str, values: dict[str, object]) -> int:
        with self._lock, readable_errors(self.path):
            return self._connection.execute(sql, values).rowcount

    def _read(self, condition: str, values: dict[str, object]) -> list[Ticket]:
        with self._lock, readable_errors(self.path):
            return _select(self._connection, condition, values)

    def request(self, new: NewTicket, now: float) -> str:
        """Add a ticket; or count the request and keep the higher priority if there is one."""
        values = {name: getattr(new, name) for name in new.__struct_fields__}
        values |= {name: json.dumps(values[name], ensure_ascii=False) for name in _LISTS}
        self._write(
            "INSERT INTO tickets (ticket_id, goal, context, suggested_name, constraints, imports, "
            "preamble, hints, priority, status, requested_by, created, updated) VALUES (:ticket_id,"
            " :goal, :context, :suggested_name, :constraints, :imports, :preamble, :hints, "
            ":priority, 'open', :requested_by, :now, :now) ON CONFLICT (ticket_id) DO UPDATE SET "
            "requests = requests + 1, priority = max(priority, excluded.priority), updated = :now",
            values | {"ticket_id": new.ticket_id, "now": now},
        )
        return new.ticket_id

    def get(self, ticket_id: str) -> Ticket:
        """Return a ticket; raise UsageError if there is none with this id."""
        found = self._read("WHERE ticket_id = :id", {"id": ticket_id})
        if not found:
            raise UsageError(f"there is no ticket {ticket_id} in {self.path}")
        return found[0]

    def all(self) -> list[Ticket]:
        """Return every ticket, the most urgent first."""
        with self._lock, readable_errors(self.path):
            return all_tickets(self._connection)

    def free(self, limit: int, now: float) -> list[Ticket]:
        """Return the tickets that can be claimed, open or expired, most urgent first."""
        return self._read(
            f"WHERE {_FREE} {_BY_URGENCY} LIMIT :limit",
            {"now": now, "limit": limit},
        )

    def claim(self, ticket_id: str, who: str, now: float, expires: float) -> bool:
        """Claim a free ticket; return False if it is not free."""
        changed = self._write(_CLAIM, {"id": ticket_id, "who": who, "now": now, "expires": expires})
        return changed == 1

    def renew(self, ticket_id: str, who: str, now: float, expires: float) -> bool:
        """Extend a claim; return False if it has expired or was taken over."""
        changed = self._write(
            "UPDATE tickets SET claim_expires = :expires, updated = :now WHERE ticket_id = :id "
            "AND status = 'claimed' AND claimed_by = :who AND claim_expires > :now",
            {"id": ticket_id, "who": who, "now": now, "expires": expires},
        )
        return changed == 1

    def release(self, ticket_id: str, who: str, now: float) -> bool:
        """End a claim; return False if this supplier has none."""
        changed = self._write(
            "UPDATE tickets SET status = 'open', claimed_by = NULL, claim_expires = NULL, "
            "updated = :now WHERE ticket_id = :id AND status = 'claimed' AND claimed_by = :who",
            {"id": ticket_id, "who": who, "now": now},
        )
        return changed == 1

    def complete(self, ticket_id: str, proof: str, who: str, now: float) -> bool:
        """Complete a ticket with a checked proof; return False if another supplier has it."""
        changed = self._write(_COMPLETE, {"id": ticket_id, "proof": proof, "who": who, "now": now})
        return changed == 1

    def note_error(self, ticket_id: str, error: str, now: float) -> None:
        """Record why a proof of an open ticket was not accepted."""
        self._write(
            "UPDATE tickets SET last_error = :error, updated = :now "
            "WHERE ticket_id = :id AND status != 'completed'",
            {"id": ticket_id, "error": error, "now": now},
        )


def all_tickets(connection: sqlite3.Connection) -> list[Ticket]:
    """Return every ticket, the most urgent first; the connection may be read-only."""
    return _select(connection, _BY_URGENCY, {})


def _select(
    connection: sqlite3.Connection, condition: str, values: dict[str, object]
) -> list[Ticket]:
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    rows = cursor.execute(
        f"SELECT {_COLUMNS} FROM tickets {condition}",  # noqa: S608 - our own text
        values,
    )
    lists = [dict(row) | {name: jsontext.decode(row[name]) for name in _LISTS} for row in rows]
    return msgspec.convert(lists, list[Ticket])


def rank(
    tickets: Sequence[Ticket], scores: Sequence[float], limit: int, least: float
) -> list[Ticket]:
    """Sort tickets: the most similar first; among equals completed ones, then urgent ones."""
    scored: list[Ticket] = []
    for ticket, score in zip(tickets, scores, strict=True):
        if score < least:
            continue
        found = msgspec.structs.replace(ticket, similarity=score)
        if score < 1.0 and ticket.status is TicketStatus.COMPLETED:
            # The proof is of another statement.
            found = msgspec.structs.replace(
                found, status=TicketStatus.SIMILAR, completed_proof=None
            )
        scored.append(found)
    scored.sort(
        key=lambda t: (
            -(t.similarity or 0.0),
            t.status not in (TicketStatus.COMPLETED, TicketStatus.SIMILAR),
            -t.priority,
            t.created,
        )
    )
    return scored[:limit]
