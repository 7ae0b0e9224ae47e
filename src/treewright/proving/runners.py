"""Which runner a run's settings name, and what it expands with. No way from one to the other."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from treewright.proving.environment import Environment
from treewright.proving.expansion import Expander, Recorded, estimate
from treewright.proving.learning import Learned
from treewright.proving.once_more import WithoutNames, known_without
from treewright.proving.search import Runner
from treewright.proving.settings import Mode, Settings
from treewright.proving.tactics.source import TacticSource

_MODULES: dict[Mode, str] = {
    "centralized": "treewright.proving.centralized",
    "distributed": "treewright.cellview.runner",
}
"""Where a mode's `make_runner(settings, expander)` is. By name: a runner stands on this package,
so this package cannot import it."""


def make_expander(
    settings: Settings,
    environment: Environment,
    source: TacticSource,
    recorded: Recorded,
    *,
    teaches: bool = False,
    without: Sequence[str] = (),
) -> Expander:
    """`without` are declarations that no tactic may name."""
    known = environment.knowledge if settings.sources.known else None
    if without:
        source = WithoutNames(source, without)
        known = known_without(known, without) if known is not None else None
    lessons = settings.sources.learned
    return Expander(
        environment,
        source,
        estimate,
        batch=settings.batch,
        discount=settings.policy.discount,
        recorded=recorded,
        known=known,
        learned=Learned(lessons) if lessons else None,
        teaches=teaches,
    )


def make_runner(settings: Settings, expander: Expander) -> Runner:
    make: Callable[[Settings, Expander], Runner] = importlib.import_module(
        _MODULES[settings.mode]
    ).make_runner
    return make(settings, expander)
