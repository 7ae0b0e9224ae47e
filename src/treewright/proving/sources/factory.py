"""The tactic source that a run's settings describe.

The user's own tactics weigh most, then those for the goal's shape and of a model; lemmas come after
them, and Lean's own search (`exact?`), which is slow, last.
"""

from __future__ import annotations

from collections.abc import Callable

from treewright.proving.settings import Settings
from treewright.proving.sources.advice import LeanAdvice
from treewright.proving.sources.base import TacticSource
from treewright.proving.sources.cached import CachedTactics, TacticCache
from treewright.proving.sources.core import CoreTactics
from treewright.proving.sources.definitions import DefinitionTactics
from treewright.proving.sources.file import FileTactics
from treewright.proving.sources.lemmas import LemmaTactics, PremiseSearch
from treewright.proving.sources.llm import LlmTactics, Spend
from treewright.proving.sources.merged import MergedSource
from treewright.proving.sources.noise import NoisySource

_OWN, _CACHED, _CORE, _MODEL = 3.0, 3.0, 1.0, 1.0
_DEFINITIONS, _LEMMAS, _LIBRARY, _ADVICE = 0.5, 0.5, 0.1, 0.1


def build_source(
    settings: Settings,
    premises: PremiseSearch | None = None,
    cache: TacticCache | None = None,
    warn: Callable[[str], None] = lambda text: None,
    definitions: frozenset[str] = frozenset(),
    spend: Spend = lambda usage: None,
    library: PremiseSearch | None = None,
) -> TacticSource:
    """`premises` and `cache` are what the paths in the settings name, opened by the caller.

    `library` is the index of Lean's own library, for when all else has been tried on a goal.
    `definitions` are the names that the file of the goals defines itself. `warn` is told, once
    for each kind, what kept a model from answering; `spend`, what its answers used.
    """
    wanted = settings.sources
    parts: list[tuple[TacticSource, float]] = []
    if wanted.tactics is not None:
        parts.append((FileTactics(wanted.tactics, "--tactics"), _OWN))
    if cache is not None:
        parts.append((CachedTactics(cache), _CACHED))
    parts.append((CoreTactics(), _CORE))
    if definitions:
        parts.append((DefinitionTactics(definitions), _DEFINITIONS))
    if wanted.endpoint is not None:
        model = LlmTactics(wanted.endpoint.endpoint(), settings.seed, warn, spend)
        parts.append((model, _MODEL))
    if premises is not None:
        parts.append((LemmaTactics(premises), _LEMMAS))
    if library is not None:
        parts.append((LemmaTactics(library, count=6, late=True), _LIBRARY))
    if wanted.advice:
        parts.append((LeanAdvice(), _ADVICE))
    source: TacticSource = MergedSource(*parts)
    return NoisySource(source, settings.seed, wanted.noise) if wanted.noise else source
