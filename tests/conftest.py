"""Fixtures shared by all tests: small real repositories, and the program as users run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import program
from tests.llm.endpoints import SERVE_MODEL
from tests.toy import ToyRepository

if TYPE_CHECKING:
    from treewright.lean.replay import Replayer
    from treewright.lean.wasm.home import LeanHome
    from treewright.lean.wasm.session import WasmSession

# Hundreds of short processes are started: none should compile the program again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Where there is room for it, tests write to memory: they sync as often, but wait for no disk.
_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 4 << 30
if (
    os.access(_MEMORY, os.W_OK)
    and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# A busy machine is not a failing property.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")


@pytest.fixture(autouse=True)
def _isolated_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads the user's git configuration or an outer treewright's variables, nor waits
    for what another asked of an endpoint."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in list(os.environ):
        if name.startswith("TREEWRIGHT_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr("treewright.llm.turns.shared_file", lambda: tmp_path / "turns.sqlite")


@pytest.fixture
def toy(tmp_path: Path) -> ToyRepository:
    """A git repository whose sweep is a shell script that takes milliseconds."""
    return ToyRepository.create(tmp_path / "target repo")


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """The real small model, served once for the whole session."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVE_MODEL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        assert address.startswith("http"), "the model server did not start"
        yield f"{address}/v1"
        server.kill()


@pytest.fixture
def treewright(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the installed program in a process of its own."""

    def run(*args: str, cwd: Path | None = None, **kwargs) -> subprocess.CompletedProcess[str]:
        return program.run(args, cwd=cwd or tmp_path, **kwargs)

    return run


@pytest.fixture(scope="session")
def git_binary() -> str:
    found = shutil.which("git")
    assert found is not None
    return found


# -- a real Lean, installed on first use; one session and one replay check a worker ----------


@pytest.fixture(scope="session")
def home() -> LeanHome:
    from treewright.lean.wasm.install import ensure_installed

    return ensure_installed()


@pytest.fixture(scope="session")
def lean_session(home: LeanHome) -> Iterator[Callable[[], WasmSession]]:
    """Gives the worker's session, emptied; another one if an earlier test lost it."""
    from treewright.lean.wasm.session import WasmSession

    started: list[WasmSession] = []

    def give() -> WasmSession:
        if not started or not started[-1].alive:
            started.append(WasmSession(home))
        started[-1].reset()
        return started[-1]

    yield give
    for session in started:
        session.close()


@pytest.fixture
def lean(lean_session: Callable[[], WasmSession]) -> WasmSession:
    return lean_session()


@pytest.fixture(scope="session")
def replayer(home: LeanHome) -> Iterator[Replayer]:
    from treewright.lean.replay import Replayer

    with Replayer(home) as shared:
        yield shared


@pytest.fixture
def treewright_here(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lean_session: Callable[[], WasmSession],
    replayer: Replayer,
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the program in this process, on the worker's Lean; see tests/here.py."""
    from tests.here import lend_lean, run_here

    lend_lean(monkeypatch, lean_session, replayer)

    def run(
        *args: str, cwd: Path | None = None, input: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return run_here(monkeypatch, args, cwd or tmp_path, input)

    return run
