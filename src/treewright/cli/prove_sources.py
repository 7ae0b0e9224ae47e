"""Opens what a proof run's tactic sources read: a premise index, a ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from treewright.cli.output import echo
from treewright.kernel.errors import UsageError
from treewright.kernel.rendering import numbers
from treewright.llm.usage import Usage, describe_cost
from treewright.mcts.settings import FileTarget, RunRecord
from treewright.mcts.sources.base import TacticSource
from treewright.mcts.sources.cached import TacticCache
from treewright.mcts.sources.definitions import defined_in
from treewright.mcts.sources.factory import build_source
from treewright.mcts.sources.lemmas import PremiseSearch


@contextlib.contextmanager
def opened_source(record: RunRecord) -> Iterator[TacticSource]:
    settings, target = record.settings, record.target
    with contextlib.ExitStack() as stack:
        premises: PremiseSearch | None = None
        cache: TacticCache | None = None
        if settings.sources.premises is not None:
            from treewright.premises.index import PremiseIndex

            index = stack.enter_context(PremiseIndex.open(_existing(settings.sources.premises)))
            premises = index.lexical
        if settings.sources.cache is not None:
            from treewright.orchestrator.ledger.store import Ledger
            from treewright.orchestrator.ledger.tactic_cache import LedgerTactics

            ledger = Ledger(_existing(settings.sources.cache))
            stack.callback(ledger.close)
            cache = LedgerTactics(ledger)
        defined = defined_in(target.source) if isinstance(target, FileTarget) else frozenset()
        spent: list[Usage] = []
        try:
            yield build_source(settings, premises, cache, _warn, defined, spent.append)
        finally:
            tell_spent(spent)


def tell_spent(spent: list[Usage]) -> None:
    if spent:
        total = sum(spent, Usage())
        tokens = f"{total.prompt_tokens:,} tokens in, {total.completion_tokens:,} out"
        cost = describe_cost(total.cost_usd, total.unpriced_tokens)
        answers = numbers.count(len(spent), "answer")
        echo(f"treewright: {answers} of the model: {tokens}; cost {cost}", err=True)


def _warn(text: str) -> None:
    echo(f"treewright: no tactics from the model: {text}", err=True)


def _existing(path: str) -> Path:
    if not Path(path).exists():
        raise UsageError(f"there is no {path}")
    return Path(path)
