"""`treewright tickets`: the lemma marketplace from the command line."""

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

from treewright.cli.hosts import chosen, host_of, host_options
from treewright.cli.numbers import Number
from treewright.cli.orchestrator_options import ledger_option
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE, UsageError

if TYPE_CHECKING:
    from treewright.lean.hosts.host import Host
    from treewright.orchestrator.marketplace.market import Marketplace, Ticket

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
_WHO = click.option("--as", "who", default=None, help="Who supplies it.  [default: your login]")


@click.group()
def tickets() -> None:
    """Lemmas that somebody needs: ask, claim, complete with a checked proof.

    Exit codes: 0 fine, 1 taken by somebody else or not accepted, 2 wrong call.
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
    except (KeyError, OSError, ImportError):  # in a container a user need not have a name
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "somebody"


def _emit(found: Ticket | list[Ticket]) -> None:
    import msgspec

    echo(json.dumps(msgspec.to_builtins(found), ensure_ascii=False))


def _tell(ticket: Ticket, done: bool) -> None:
    """The ticket as it is now; on stderr, with exit code 1, if it was not ours to change."""
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
@click.option("--open", "only_open", is_flag=True, help="Only those that can be claimed now.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(min=1))
@click.option("--like", metavar="GOAL", help="Those similar to this statement, nearest first.")
@ledger_option
@_JSON
def list_tickets(
    only_open: bool, limit: int, like: str | None, ledger_path: Path, as_json: bool
) -> None:
    """Tickets, the most urgent first."""
    with _open(ledger_path) as marketplace:
        if like is not None:
            found = asyncio.run(marketplace.search_similar(like, limit=limit))
        elif only_open:
            found = asyncio.run(marketplace.get_open_tickets(limit=limit))
        else:
            found = asyncio.run(marketplace.get_tickets())[:limit]
    if as_json:
        _emit(found)
        return
    for ticket in found:
        near = f"{ticket.similarity:.2f}  " if ticket.similarity is not None else ""
        echo(near + _line(ticket))
    if not found:
        echo("no tickets", err=True)


@tickets.command()
@click.argument("ticket_id")
@ledger_option
@_JSON
def show(ticket_id: str, ledger_path: Path, as_json: bool) -> None:
    """One ticket: the statement to prove, and the proof if there is one."""
    from treewright.orchestrator.marketplace.market import heading, lemma_text

    with _open(ledger_path) as marketplace:
        ticket = asyncio.run(marketplace.get_ticket(ticket_id))
    if as_json:
        _emit(ticket)
        return
    echo(_line(ticket), err=True)
    for name in ("constraints", "hints", "last_error"):
        value = getattr(ticket, name)
        if value:
            echo(f"{name}: {value if isinstance(value, str) else ', '.join(value)}", err=True)
    echo(heading(ticket) + (ticket.completed_proof or lemma_text(ticket, "sorry")), nl=False)


@tickets.command()
@click.argument("goal")
@click.option("--name", default="", help="What the lemma is to be called.")
@click.option("--context", multiple=True, help="A hypothesis `x : T`, or a keyword; repeatable.")
@click.option("--constraint", "constraints", multiple=True, help="Words for the supplier.")
@click.option("--import", "imports", multiple=True, default=("Init",), show_default=True)
@click.option("--priority", default=0.5, show_default=True, type=Number(0, 1))
@ledger_option
@_JSON
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
    """Ask for a lemma. The same statement again gives the ticket that is there."""
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
        _emit(ticket)
    else:
        echo(_line(ticket))
        if ticket.hints:
            echo(f"the library has: {', '.join(ticket.hints)}", err=True)


@tickets.command()
@click.argument("ticket_id")
@_WHO
@click.option("--lease", type=Number(min=1), help="Seconds it is yours.  [default: 600]")
@ledger_option
def claim(ticket_id: str, who: str | None, lease: float | None, ledger_path: Path) -> None:
    """Take a ticket for some time. Exit 1 if somebody else has it."""
    with _open(ledger_path) as marketplace:
        done = asyncio.run(
            marketplace.claim_ticket(ticket_id, who or _login(), lease_seconds=lease)
        )
        ticket = asyncio.run(marketplace.get_ticket(ticket_id))
    _tell(ticket, done)


@tickets.command()
@click.argument("ticket_id")
@_WHO
@ledger_option
def renew(ticket_id: str, who: str | None, ledger_path: Path) -> None:
    """Keep a claimed ticket for a full lease more. Exit 1 if it is not yours any more."""
    with _open(ledger_path) as marketplace:
        done = asyncio.run(marketplace.renew_claim(ticket_id, who or _login()))
        ticket = asyncio.run(marketplace.get_ticket(ticket_id))
    _tell(ticket, done)


@tickets.command()
@click.argument("ticket_id")
@_WHO
@ledger_option
def release(ticket_id: str, who: str | None, ledger_path: Path) -> None:
    """Give a claimed ticket back. Exit 1 if it is not yours."""
    with _open(ledger_path) as marketplace:
        done = asyncio.run(marketplace.release_ticket(ticket_id, who or _login()))
        ticket = asyncio.run(marketplace.get_ticket(ticket_id))
    _tell(ticket, done)


@tickets.command()
@click.argument("ticket_id")
@click.argument("proof", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--script-only", is_flag=True, help="Take tactics and no declarations.")
@_WHO
@ledger_option
@host_options
@_JSON
def complete(
    ticket_id: str,
    proof: Path,
    script_only: bool,
    who: str | None,
    ledger_path: Path,
    requested: str | None,
    sandbox: bool | None,
    as_json: bool,
) -> None:
    """Check the proof in a file (`-`: stdin) and complete the ticket with it."""
    text = sys.stdin.read() if str(proof) == "-" else _read(proof)
    choice = chosen(requested, sandbox)
    with _open(ledger_path, lambda: host_of(choice)) as marketplace:
        ticket = asyncio.run(
            marketplace.complete_ticket(ticket_id, text, who or _login(), script_only=script_only)
        )
    if as_json:
        _emit(ticket)
    else:
        echo(_line(ticket))


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from error
