"""Several processes at one marketplace: nothing is asked for, claimed or completed twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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
