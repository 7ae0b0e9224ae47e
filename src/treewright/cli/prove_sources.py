"""The tactic sources of a proof run as the command line opens them, with a ledger if it has one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from treewright.cli.output import echo
from treewright.proving.settings import RunRecord
from treewright.proving.tactics import factory as opening
from treewright.proving.tactics.basic_sources import TacticCache
from treewright.proving.tactics.chat_model import Spend
from treewright.proving.tactics.source import TacticSource


@contextlib.contextmanager
def opened_source(record: RunRecord, spend: Spend = lambda usage: None) -> Iterator[TacticSource]:
    with contextlib.ExitStack() as stack:
        cache: TacticCache | None = None
        if record.settings.sources.cache is not None:
            from treewright.orchestrator.ledger.store import Ledger
            from treewright.orchestrator.ledger.tactic_cache import LedgerTactics

            ledger = Ledger(opening.existing(record.settings.sources.cache))
            stack.callback(ledger.close)
            cache = LedgerTactics(ledger)
        yield stack.enter_context(opening.opened_source(record, spend, cache, _warn))


def _warn(text: str) -> None:
    echo(f"treewright: no tactics from the model: {text}", err=True)
