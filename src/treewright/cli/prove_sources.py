"""Open the sources of tactics that a proof run has recorded, with its ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from treewright.cli.output import announce
from treewright.proving.settings import RunRecord
from treewright.proving.tactics import factory
from treewright.proving.tactics.basic_sources import TacticCache
from treewright.proving.tactics.chat_model import Spend
from treewright.proving.tactics.source import TacticSource


@contextlib.contextmanager
def opened_source(record: RunRecord, spend: Spend = lambda usage: None) -> Iterator[TacticSource]:
    """Yield the tactic source of a run.

    Args:
        spend: Called with the usage of each answer of a model.
    """
    with contextlib.ExitStack() as stack:
        cache: TacticCache | None = None
        if record.settings.sources.cache is not None:
            from treewright.orchestrator.ledger.ledger import Ledger, LedgerTacticCache

            ledger = Ledger(factory.require_file(record.settings.sources.cache))
            stack.callback(ledger.close)
            cache = LedgerTacticCache(ledger)
        yield stack.enter_context(
            factory.open_source(
                record, spend, cache, lambda text: announce(f"no tactics from the model: {text}")
            )
        )
