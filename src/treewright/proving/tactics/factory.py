"""The tactic source of a run: which sources its settings name, and the files that they read.

The user's own tactics have the largest weight, then those for the goal's shape and those of a
model. Lemmas come after them, and Lean's own search (`exact?`), which is slow, comes last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from treewright.kernel.errors import UsageError
from treewright.lean.hosts.host import Host
from treewright.lean.session.answers import ProofState, StepResult
from treewright.proving.settings import FileTarget, RunRecord, Settings
from treewright.proving.tactics.basic_sources import (
    CachedTactics,
    DefinitionTactics,
    FileTactics,
    LeanAdvice,
    TacticCache,
    defined_in,
)
from treewright.proving.tactics.chat_model import LlmTactics, Spend
from treewright.proving.tactics.core import CoreTactics
from treewright.proving.tactics.environment_tactics import (
    EnvironmentTactics,
    find_available,
    may_have_more_than_core,
    read_table,
)
from treewright.proving.tactics.premise_lemmas import LemmaTactics, PremiseSearch
from treewright.proving.tactics.source import MergedSource, NoisySource, TacticSource

if TYPE_CHECKING:
    from treewright.lean.session.host_session import HostSession

_OWN, _CACHED, _CORE, _MODEL = 3.0, 3.0, 1.0, 1.0
_ENVIRONMENT = 0.8
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
    """Return the tactic source that settings describe.

    Args:
        settings: The settings of the run.
        premises: The premise index that the settings name, opened by the caller.
        cache: The tactic cache that the settings name, opened by the caller.
        warn: Receives each kind of failure of a model once.
        definitions: The names that the file of the goals defines.
        spend: Receives the usage of each answer of a model.
        library: The index of Lean's library, for goals on which everything else was tried.
    """
    wanted = settings.sources
    parts: list[tuple[TacticSource, float]] = []
    if wanted.tactics is not None:
        parts.append((FileTactics(wanted.tactics, "--tactics"), _OWN))
    if cache is not None:
        parts.append((CachedTactics(cache), _CACHED))
    parts.append((CoreTactics(), _CORE))
    if wanted.environment:
        parts.append((EnvironmentTactics(wanted.environment), _ENVIRONMENT))
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


def add_library_index(
    settings: Settings, host: Host, announce: Callable[[str], None] = lambda text: None
) -> Settings:
    """Return settings with the index of the bundled Lean's library, which is built if missing."""
    from treewright.lean.processes import LeanProcesses
    from treewright.premises.index_builder import ensure_index, library_digest

    if host.backend != "wasm":
        return settings
    ensure_index(lambda: LeanProcesses(host), announce=announce)
    sources = msgspec.structs.replace(settings.sources, library=library_digest())
    return msgspec.structs.replace(settings, sources=sources)


def add_environment_tactics(
    settings: Settings,
    target: FileTarget,
    base: Path,
    session: HostSession,
    opening: Callable[[HostSession], StepResult],
) -> Settings:
    """Return settings with the tactics of packages that a file has. Lean is asked once for a file.

    Args:
        settings: The settings of the run.
        target: The file.
        base: The directory whose `treewright.toml` may extend the table.
        session: Lean.
        opening: Opens the first goal of the file.
    """
    if not may_have_more_than_core(target.source):
        return settings
    table = read_table(base)
    state = opening(session)
    if not isinstance(state, ProofState):
        return settings
    found = find_available(table, session, state)
    sources = msgspec.structs.replace(settings.sources, environment=found)
    return msgspec.structs.replace(settings, sources=sources)


@contextlib.contextmanager
def open_library_search() -> Iterator[PremiseSearch | None]:
    """Open the index of the library; None if it was not built yet."""
    from treewright.premises.index import PremiseIndex
    from treewright.premises.index_builder import is_finished, library_path

    if not is_finished(library_path()):
        yield None
        return
    with PremiseIndex.open(library_path()) as index:
        yield index.lexical


def is_library_index_gone(record: RunRecord) -> bool:
    """Return whether the run's index of the library is gone: its answers are only in the trace."""
    from treewright.premises.index_builder import library_digest

    used = record.settings.sources.library
    return bool(used) and used != library_digest()


@contextlib.contextmanager
def open_source(
    record: RunRecord,
    spend: Spend = lambda usage: None,
    cache: TacticCache | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> Iterator[TacticSource]:
    """Open the tactic source of a run. `cache` is the ledger that the settings name."""
    settings, target = record.settings, record.target
    if settings.sources.cache is not None and cache is None:
        raise UsageError(
            "this run uses a ledger; continue it with `treewright prove --resume`, which opens it"
        )
    from treewright.premises.index import PremiseIndex
    from treewright.premises.index_builder import library_path

    with contextlib.ExitStack() as stack:
        premises: PremiseSearch | None = None
        if settings.sources.premises is not None:
            index = stack.enter_context(PremiseIndex.open(require_file(settings.sources.premises)))
            premises = index.lexical
        library: PremiseSearch | None = None
        if settings.sources.library and not is_library_index_gone(record):
            library = stack.enter_context(PremiseIndex.open(library_path())).lexical
        defined = defined_in(target.source) if isinstance(target, FileTarget) else frozenset()
        yield build_source(settings, premises, cache, warn, defined, spend, library)


def require_file(path: str) -> Path:
    if not Path(path).exists():
        raise UsageError(f"there is no {path}")
    return Path(path)
