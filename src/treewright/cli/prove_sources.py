"""The tactic sources of a proof run as the command line opens them, with a ledger if it has one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from treewright.cli.output import echo
from treewright.kernel.rendering import numbers
from treewright.llm.usage import Usage, describe_cost
from treewright.mcts.settings import RunRecord
from treewright.mcts.sources import opening
from treewright.mcts.sources.base import TacticSource
from treewright.mcts.sources.cached import TacticCache


@contextlib.contextmanager
def opened_source(record: RunRecord) -> Iterator[TacticSource]:
    with contextlib.ExitStack() as stack:
        cache: TacticCache | None = None
        if record.settings.sources.cache is not None:
            from treewright.orchestrator.ledger.store import Ledger
            from treewright.orchestrator.ledger.tactic_cache import LedgerTactics

            ledger = Ledger(opening.existing(record.settings.sources.cache))
            stack.callback(ledger.close)
            cache = LedgerTactics(ledger)
        spent: list[Usage] = []
        stack.callback(tell_spent, spent)
        yield stack.enter_context(opening.opened_source(record, cache, _warn, spent.append))


def tell_spent(spent: list[Usage]) -> None:
    if spent:
        total = sum(spent, Usage())
        tokens = f"{total.prompt_tokens:,} tokens in, {total.completion_tokens:,} out"
        cost = describe_cost(total.cost_usd, total.unpriced_tokens)
        answers = numbers.count(len(spent), "answer")
        echo(f"treewright: {answers} of the model: {tokens}; cost {cost}", err=True)


def _warn(text: str) -> None:
    echo(f"treewright: no tactics from the model: {text}", err=True)
