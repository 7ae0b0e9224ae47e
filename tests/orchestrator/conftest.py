"""One set of Lean processes for all tests of a worker that need them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from treewright.orchestrator.lean_access import LeanAccess


@pytest.fixture(scope="session")
def lean_access() -> Iterator[LeanAccess]:
    access = LeanAccess(sessions=1)
    yield access
    asyncio.run(access.close())
