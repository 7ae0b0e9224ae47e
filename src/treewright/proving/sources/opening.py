"""Opens what the tactic sources of a proof run read: a premise index, its file's definitions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from treewright.kernel.errors import UsageError
from treewright.lean.host import Host
from treewright.proving.settings import FileTarget, RunRecord, Settings
from treewright.proving.sources.base import TacticSource
from treewright.proving.sources.cached import TacticCache
from treewright.proving.sources.definitions import defined_in
from treewright.proving.sources.factory import build_source
from treewright.proving.sources.lemmas import PremiseSearch
from treewright.proving.sources.llm import Spend


def with_library(
    settings: Settings, host: Host, announce: Callable[[str], None] = lambda text: None
) -> Settings:
    """With the index of the bundled Lean's library, which is made first if it is not there."""
    from treewright.lean.host_session import HostSession
    from treewright.premises.library import ensure_index, library_digest

    if host.backend != "wasm":
        return settings
    ensure_index(lambda: HostSession(host), announce=announce)
    sources = msgspec.structs.replace(settings.sources, library=library_digest())
    return msgspec.structs.replace(settings, sources=sources)


@contextlib.contextmanager
def library_search() -> Iterator[PremiseSearch | None]:
    """The index of the library as it is; None if nobody has made it yet."""
    from treewright.premises.index import PremiseIndex
    from treewright.premises.library import is_finished, library_path

    if not is_finished(library_path()):
        yield None
        return
    with PremiseIndex.open(library_path()) as index:
        yield index.lexical


def changed_since(record: RunRecord) -> bool:
    """Whether a run's index of the library is no longer there: what it said, only the trace has."""
    from treewright.premises.library import library_digest

    used = record.settings.sources.library
    return bool(used) and used != library_digest()


@contextlib.contextmanager
def opened_source(
    record: RunRecord,
    spend: Spend = lambda usage: None,
    cache: TacticCache | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> Iterator[TacticSource]:
    """`cache` is the ledger that the settings name: whoever can open one gives it."""
    settings, target = record.settings, record.target
    if settings.sources.cache is not None and cache is None:
        raise UsageError(
            "this run draws on a ledger; go on with `treewright prove --resume`, which opens it"
        )
    from treewright.premises.index import PremiseIndex
    from treewright.premises.library import library_path

    with contextlib.ExitStack() as stack:
        premises: PremiseSearch | None = None
        if settings.sources.premises is not None:
            index = stack.enter_context(PremiseIndex.open(existing(settings.sources.premises)))
            premises = index.lexical
        library: PremiseSearch | None = None
        if settings.sources.library and not changed_since(record):
            library = stack.enter_context(PremiseIndex.open(library_path())).lexical
        defined = defined_in(target.source) if isinstance(target, FileTarget) else frozenset()
        yield build_source(settings, premises, cache, warn, defined, spend, library)


def existing(path: str) -> Path:
    if not Path(path).exists():
        raise UsageError(f"there is no {path}")
    return Path(path)
