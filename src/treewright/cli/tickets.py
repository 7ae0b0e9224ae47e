"""`treewright tickets`: ask for lemmas, and supply them with checked proofs."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.lean_choice import choose_lean, lean_options, open_choice
from treewright.cli.options import (
    POSITIVE,
    SHARE,
    Number,
    group,
    json_option,
    ledger_option,
    option,
    read_user_file,
    verbose_option,
)
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE, UsageError

if TYPE_CHECKING:
    from treewright.lean.hosts.host import Host
    from treewright.orchestrator.marketplace.market import Marketplace, Ticket

_SUPPLIER = option(
    "--as", "supplier", metavar="NAME", default_text="your login", help="Name of the supplier."
)


@group()
def tickets() -> None:
    """Ask for lemmas, claim tickets, and complete them with a checked proof.

    Exit codes: 0 done, 1 the ticket is not yours or the proof was refused, 2 wrong call.
    """


def _open(ledger_path: Path, open_host: Callable[[], Host] | None = None) -> Marketplace:
    from treewright.orchestrator.marketplace.market import Marketplace

    if not ledger_path.is_file():
        raise UsageError(
            f"there is no ledger at {ledger_path}; `treewright tickets request` starts one"
        )
    return Marketplace(ledger_path, open_host=open_host)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # in a container, a user may have no name
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def _print_tickets(found: Ticket | list[Ticket]) -> None:
    import msgspec

    echo(json.dumps(msgspec.to_builtins(found), ensure_ascii=False))


def _print_change(ticket: Ticket, done: bool) -> None:
    """Print the ticket; on stderr, with exit code 1, if it could not be changed."""
    echo(_line(ticket), err=not done)
    if not done:
        raise click.exceptions.Exit(EXIT_FAILURE)


def _line(ticket: Ticket) -> str:
    holder = ""
    if ticket.claimed_by:
        left = (ticket.claim_expires or 0) - time.time()
        holder = f" by {ticket.claimed_by}" + (
            f" ({left:.0f} s left)" if left > 0 else " (expired)"
        )
    elif ticket.completed_by:
        holder = f" by {ticket.completed_by}"
    goal = " ".join(ticket.goal.split())
    return f"{ticket.ticket_id}  {ticket.priority:.2f}  {ticket.status}{holder}  {goal}"


@tickets.command("list")
@option("--open", "only_open", is_flag=True, help="Only tickets that can be claimed now.")
@option("--limit", default=100, type=POSITIVE, help="Most tickets to list.")
@option("--like", metavar="GOAL", help="Tickets similar to this statement, the nearest first.")
@ledger_option
@json_option
def list_tickets(
    only_open: bool, limit: int, like: str | None, ledger_path: Path, as_json: bool
) -> None:
    """List tickets, the most urgent first."""
    with _open(ledger_path) as marketplace:
        if like is not None:
            found = asyncio.run(marketplace.search_similar(like, limit=limit))
        elif only_open:
            found = asyncio.run(marketplace.get_open_tickets(limit=limit))
        else:
            found = asyncio.run(marketplace.get_tickets())[:limit]
    if as_json:
        _print_tickets(found)
        return
    for ticket in found:
        near = f"{ticket.similarity:.2f}  " if ticket.similarity is not None else ""
        echo(near + _line(ticket))
    if not found:
        echo("no tickets", err=True)


@tickets.command()
@click.argument("ticket_id")
@ledger_option
@json_option
def show(ticket_id: str, ledger_path: Path, as_json: bool) -> None:
    """Print the statement of a ticket, and its proof if there is one."""
    from treewright.orchestrator.marketplace.market import heading, lemma_text

    with _open(ledger_path) as marketplace:
        ticket = asyncio.run(marketplace.get_ticket(ticket_id))
    if as_json:
        _print_tickets(ticket)
        return
    echo(_line(ticket), err=True)
    for name in ("constraints", "hints", "last_error"):
        value = getattr(ticket, name)
        if value:
            echo(f"{name}: {value if isinstance(value, str) else ', '.join(value)}", err=True)
    echo(heading(ticket) + (ticket.completed_proof or lemma_text(ticket, "sorry")), nl=False)


@tickets.command()
@click.argument("goal")
@option("--name", metavar="NAME", default="", help="Name of the lemma.")
@option(
    "--context",
    metavar="ENTRY",
    multiple=True,
    help="Hypothesis `x : T`, or a keyword. Repeatable.",
)
@option(
    "--constraint",
    "constraints",
    metavar="TEXT",
    multiple=True,
    help="Condition for the supplier, in words. Repeatable.",
)
@option(
    "--import",
    "imports",
    metavar="MODULE",
    multiple=True,
    default=("Init",),
    help="Module that the proof may use. Repeatable.",
)
@option("--priority", default=0.5, type=SHARE, help="Urgency of the ticket, 0 to 1.")
@ledger_option
@json_option
def request(
    goal: str,
    name: str,
    context: tuple[str, ...],
    constraints: tuple[str, ...],
    imports: tuple[str, ...],
    priority: float,
    ledger_path: Path,
    as_json: bool,
) -> None:
    """Ask for a lemma. A second request for the same statement returns the existing ticket."""
    from treewright.lean.choice import choose
    from treewright.orchestrator.marketplace.market import Marketplace
    from treewright.premises.index import PremiseIndex
    from treewright.premises.index_builder import default_path

    with contextlib.ExitStack() as stack:
        path = default_path(imports, choose(), Path.cwd())
        index = stack.enter_context(PremiseIndex.open(path)) if path.is_file() else None
        marketplace = stack.enter_context(Marketplace(ledger_path, premises=index))

        async def ask() -> Ticket:
            ticket_id = await marketplace.request_lemma(
                goal,
                context,
                name,
                constraints,
                priority,
                imports=imports,
                requested_by=_login(),
            )
            return await marketplace.get_ticket(ticket_id)

        ticket = asyncio.run(ask())
    if as_json:
        _print_tickets(ticket)
    else:
        echo(_line(ticket))
        if ticket.hints:
            echo(f"the library has: {', '.join(ticket.hints)}", err=True)


@tickets.command()
@click.argument("ticket_id")
@_SUPPLIER
@option(
    "--lease",
    type=Number(min=1),
    metavar="SECONDS",
    default_text="600",
    help="Seconds for which the ticket is yours.",
)
@ledger_option
def claim(ticket_id: str, supplier: str | None, lease: float | None, ledger_path: Path) -> None:
    """Claim a ticket for some time. Exit code 1 if another supplier has it."""
    with _open(ledger_path) as marketplace:
        done = asyncio.run(
            marketplace.claim_ticket(ticket_id, supplier or _login(), lease_seconds=lease)
        )
        ticket = asyncio.run(marketplace.get_ticket(ticket_id))
    _print_change(ticket, done)


@tickets.command()
@click.argument("ticket_id")
@_SUPPLIER
@ledger_option
def renew(ticket_id: str, supplier: str | None, ledger_path: Path) -> None:
    """Extend the claim of a ticket by a full lease. Exit code 1 if it is no longer yours."""
    with _open(ledger_path) as marketplace:
        done = asyncio.run(marketplace.renew_claim(ticket_id, supplier or _login()))
        ticket = asyncio.run(marketplace.get_ticket(ticket_id))
    _print_change(ticket, done)


@tickets.command()
@click.argument("ticket_id")
@_SUPPLIER
@ledger_option
def release(ticket_id: str, supplier: str | None, ledger_path: Path) -> None:
    """Give up the claim of a ticket. Exit code 1 if it is not yours."""
    with _open(ledger_path) as marketplace:
        done = asyncio.run(marketplace.release_ticket(ticket_id, supplier or _login()))
        ticket = asyncio.run(marketplace.get_ticket(ticket_id))
    _print_change(ticket, done)


@tickets.command()
@click.argument("ticket_id")
@click.argument("proof", type=click.Path(path_type=Path, allow_dash=True))
@option("--script-only", is_flag=True, help="Accept a tactic script only, no declarations.")
@_SUPPLIER
@ledger_option
@lean_options
@json_option
@verbose_option
def complete(
    ticket_id: str,
    proof: Path,
    script_only: bool,
    supplier: str | None,
    ledger_path: Path,
    requested: str | None,
    sandbox: bool | None,
    as_json: bool,
) -> None:
    """Complete a ticket with a proof, after a check.

    PROOF is a file, or - for stdin.
    """
    text = sys.stdin.read() if str(proof) == "-" else read_user_file(proof)
    choice = choose_lean(requested, sandbox)
    with _open(ledger_path, lambda: open_choice(choice)) as marketplace:
        ticket = asyncio.run(
            marketplace.complete_ticket(
                ticket_id, text, supplier or _login(), script_only=script_only
            )
        )
    if as_json:
        _print_tickets(ticket)
    else:
        echo(_line(ticket))
