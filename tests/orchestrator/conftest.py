"""One set of Lean processes for all tests of a worker that need them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from treewright.orchestrator import background, scheduler
from treewright.orchestrator.workers.lean_access import LeanAccess


@pytest.fixture(scope="session")
def lean_access() -> Iterator[LeanAccess]:
    access = LeanAccess(sessions=1)
    yield access
    asyncio.run(access.close())


@pytest.fixture
def shared_lean(lean_access: LeanAccess, monkeypatch: pytest.MonkeyPatch) -> LeanAccess:
    """The same, for code that makes its own and closes it: it gets these, and they stay open."""

    async def stay_open() -> None:
        pass

    for module in (background, scheduler):
        monkeypatch.setattr(module, "LeanAccess", lambda sessions, **_: lean_access)
    monkeypatch.setattr(lean_access, "close", stay_open)
    return lean_access
