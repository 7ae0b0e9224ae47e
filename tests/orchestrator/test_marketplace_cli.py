"""The marketplace by the command line, and from several processes at once."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import NoReturn

import pytest

from tests.premises.conftest import SMALL, written
from treewright.cli import tickets
from treewright.premises.index_builder import default_path

pytestmark = pytest.mark.xdist_group("lean-replay")
Run = Callable[..., CompletedProcess[str]]


def test_from_request_to_proof(treewright_here: Run, tmp_path: Path) -> None:
    absent = treewright_here("tickets", "list")
    assert absent.returncode == 2
    assert "treewright tickets request" in absent.stderr
    assert not (tmp_path / ".treewright").exists()

    asked = treewright_here(
        "tickets", "request", "p ∨ q", "--context", "p q : Prop", "--context", "h : p",
        "--name", "left_one", "--priority", "0.7", "--constraint", "short", "--json",
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    ticket = json.loads(asked.stdout)["ticket_id"]

    listed = treewright_here("tickets", "list", "--open")
    assert listed.stdout == f"{ticket}  0.70  open  p ∨ q\n"
    assert treewright_here("tickets", "claim", ticket, "--as", "ann").returncode == 0
    again = treewright_here("tickets", "claim", ticket, "--as", "bob")
    assert (again.returncode, again.stdout) == (1, "")
    assert "claimed by ann" in again.stderr
    assert treewright_here("tickets", "list", "--open", "--json").stdout == "[]\n"

    assert treewright_here("tickets", "renew", ticket, "--as", "ann").returncode == 0
    shown = treewright_here("tickets", "show", ticket)
    text = "import Init\ntheorem left_one (p q : Prop) (h : p) : p ∨ q := by\n"
    assert shown.stdout == f"{text}  sorry\n"

    taken = treewright_here("tickets", "complete", ticket, "-", "--as", "bob", input="exact .inl h")
    assert (taken.returncode, taken.stdout) == (1, "")
    assert "claimed by ann" in taken.stderr
    done = treewright_here("tickets", "complete", ticket, "-", "--as", "ann", input="exact .inl h")
    assert done.returncode == 0, done.stderr
    assert treewright_here("tickets", "show", ticket).stdout == f"{text}  exact .inl h\n"
    assert "completed by ann" in treewright_here("tickets", "list").stdout
    assert treewright_here("tickets", "renew", ticket, "--as", "ann").returncode == 1
    assert treewright_here("tickets", "release", ticket, "--as", "ann").returncode == 1


def test_the_library_s_index_gives_hints(
    treewright: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path / "cache"))
    written(default_path(["Init"]), SMALL)
    asked = treewright("tickets", "request", "∀ a b : Nat, a + b = b + a")
    assert asked.returncode == 0, asked.stderr
    assert asked.stderr.startswith("the library has: Nat.add_comm, ")


def test_a_refused_proof_is_one_line(treewright_here: Run, tmp_path: Path) -> None:
    ticket = json.loads(treewright_here("tickets", "request", "1 = 2", "--json").stdout)[
        "ticket_id"
    ]
    (tmp_path / "proof.lean").write_text("decide")
    refused = treewright_here("tickets", "complete", ticket, "proof.lean", "--as", "me")
    assert refused.returncode == 1
    chosen, said = refused.stderr.splitlines()
    assert chosen.startswith("Lean backend: wasm")
    assert said.startswith("treewright: the proof of lemma_")
    assert treewright_here("tickets", "show", "nowhere").returncode == 2
    near = treewright_here("tickets", "list", "--like", "2 = 1", "--json")
    (found,) = json.loads(near.stdout)
    assert 0.3 <= found["similarity"] < 1


def test_who_has_no_login_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)

    def nobody(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert tickets._login() == f"uid {os.getuid()}"


PROCESSES = 4
TICKETS = 25

# Every process asks for all the lemmas, then claims until nothing is left.
SUPPLIER = f"""
import asyncio, json, sys
from treewright.orchestrator.marketplace.market import Marketplace

async def main(path, who):
    claimed = []
    with Marketplace(path) as marketplace:
        sys.stdin.readline()
        for number in range({TICKETS}):
            await marketplace.request_lemma(f"{{number}} = {{number}}", priority=number / 100)
        while tickets := await marketplace.get_open_tickets(limit=3):
            for ticket in tickets:
                if await marketplace.claim_ticket(ticket.ticket_id, who):
                    claimed.append(ticket.ticket_id)
    print(json.dumps(claimed))

asyncio.run(main(*sys.argv[1:]))
"""


def test_every_ticket_is_claimed_by_one_process(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SUPPLIER, str(path), f"supplier {number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    for process in processes:  # all are let go together
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    claimed = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES
    every = [ticket for one in claimed for ticket in one]
    assert len(every) == len(set(every)) == TICKETS

    import asyncio

    from treewright.orchestrator.marketplace.market import Marketplace

    with Marketplace(path) as marketplace:
        tickets = asyncio.run(marketplace.get_tickets())
    assert {ticket.requests for ticket in tickets} == {PROCESSES}
    owners = {f"supplier {n}": set(one) for n, one in enumerate(claimed)}
    assert all(t.claimed_by and t.ticket_id in owners[t.claimed_by] for t in tickets)
