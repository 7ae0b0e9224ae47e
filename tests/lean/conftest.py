"""A real Lean for the tests, installed on first use and shared by the tests of one worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lean.miniature import tarball  # noqa: F401 (a fixture)
from treewright.lean.replay import Replayer
from treewright.lean.types import ProofState, StepResult
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.install import ensure_installed
from treewright.lean.wasm.session import WasmSession


@pytest.fixture(scope="session")
def home() -> LeanHome:
    return ensure_installed()


@pytest.fixture(scope="session")
def _shared(home: LeanHome) -> Iterator[list[WasmSession]]:
    holder: list[WasmSession] = []
    yield holder
    for session in holder:
        session.close()


@pytest.fixture
def lean(home: LeanHome, _shared: list[WasmSession]) -> WasmSession:
    """The worker's session, replaced if an earlier test lost it; nothing of theirs is left."""
    if not _shared or not _shared[-1].alive:
        _shared.append(WasmSession(home))
    _shared[-1].reset()
    return _shared[-1]


@pytest.fixture(scope="session")
def replayer(home: LeanHome) -> Iterator[Replayer]:
    with Replayer(home) as shared:
        yield shared


def state(result: StepResult) -> ProofState:
    """The result, which has to be a proof state."""
    assert isinstance(result, ProofState), result
    return result
