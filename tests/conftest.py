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
from treewright.kernel.procs import sandbox
from treewright.llm.request_queue import forget_queues

if TYPE_CHECKING:
    from tests.dashboard.serving import Server
    from treewright.lean.hosts.wasm.home import LeanHome
    from treewright.lean.session.host_session import HostSession
    from treewright.lean.verify.replayer import Replayer

# Hundreds of short processes start: none of them should compile the program again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# With enough memory, tests write to it: they sync as often, but do not wait for a disk.
_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 4 << 30
if (
    os.access(_MEMORY, os.W_OK)
    and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# A busy machine is not a failing property. The examples are the same each time, so code that a
# change did not touch does not fail. `--hypothesis-profile=random` tries other examples.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("here", settings.get_profile("random"), derandomize=True)
settings.load_profile("here")


@pytest.fixture(autouse=True)
def _isolated_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Give each test its own git configuration, state directory and endpoint requests, and remove
    treewright's variables of the caller."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # As in an activated environment: `python` is this interpreter, and not a script that finds one.
    own = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([own, os.environ["PATH"]]))
    for name in list(os.environ):
        if name.startswith("TREEWRIGHT_"):
            monkeypatch.delenv(name)
    # All tests of a worker share it: a test reuses the modules that an earlier one compiled.
    monkeypatch.setenv("TREEWRIGHT_STATE", str(tmp_path_factory.getbasetemp() / "state"))
    forget_queues()


@pytest.fixture
def toy(tmp_path: Path) -> ToyRepository:
    """Return a git repository with a sweep in shell that takes milliseconds."""
    return ToyRepository.create(tmp_path / "target repo")


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> ToyRepository:
    """Return a repository with two finished searches, `one` and `two`; see tests/two_runs.py."""
    from tests import two_runs

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        return two_runs.make(tmp_path_factory.mktemp("two_runs"))


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> ToyRepository:
    """Return a repository with a finished tree run and a finished proof run."""
    from tests.dashboard import proof_runs, samples

    toy = samples.finished(tmp_path_factory.mktemp("searched"))
    proof_runs.solved(toy.path)
    return toy


@pytest.fixture(scope="session")
def server(searched: ToyRepository) -> Iterator[Server]:
    """Start a dashboard over `searched`, for tests of its answers and of its pages."""
    from tests.dashboard.serving import served

    with served("--runs", searched.path) as running:
        yield running


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Skip the test, with the reason, where commands cannot run in a sandbox."""
    problem = sandbox.find_problem()
    if problem is not None:
        pytest.skip(f"needs bubblewrap, {problem}")


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """Serve the real small model once for the whole session and return its URL."""
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
    """Return a function that runs the installed program in a process."""

    def run(*args: str, cwd: Path | None = None, **kwargs) -> subprocess.CompletedProcess[str]:
        return program.run(args, cwd=cwd or tmp_path, **kwargs)

    return run


@pytest.fixture(scope="session")
def git_binary() -> str:
    found = shutil.which("git")
    assert found is not None
    return found


# -- a real Lean, installed on first use; one session and one replay check a worker ----------


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker that xdist has, for tests without xdist (`-p no:xdist`)."""
    config.addinivalue_line("markers", "xdist_group(name): tests that share a worker")


def pytest_unconfigure() -> None:
    """Close the watchdog, the only process that stays until the end of the tests."""
    from treewright.kernel.procs.watchdog import watchdog

    watchdog.close()


_GROUPS = {
    "home": "lean-session",  # a Lean process that has read some texts is three times as fast
    "searched": "browser",  # a search that takes a second, and a server over it
}
"""The group of tests by a fixture that they need."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests without a marker into the group of the first fixture in `_GROUPS`."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            needed = getattr(item, "fixturenames", ())
            for group in (name for fixture, name in _GROUPS.items() if fixture in needed):
                item.add_marker(pytest.mark.xdist_group(group))
                break


@pytest.fixture(scope="session")
def home() -> LeanHome:
    from treewright.lean.hosts.wasm.install import ensure_installed

    return ensure_installed()


_MOST_USES = 100
"""Tests that share one Lean session before it is replaced."""


@pytest.fixture(scope="session")
def lean_session(home: LeanHome) -> Iterator[Callable[[], HostSession]]:
    """Return the worker's session, emptied; start a new one if an earlier test lost it."""
    from treewright.lean.session.host_session import HostSession

    started: list[HostSession] = []

    uses = 0

    def give() -> HostSession:
        nonlocal uses
        uses += 1
        if started and uses % _MOST_USES == 0:  # a session that hundreds of tests used may crash
            started[-1].close()
        if not started or not started[-1].alive:
            started.append(HostSession(home))
        started[-1].reset()
        return started[-1]

    yield give
    for session in started:
        session.close()


@pytest.fixture
def lean(lean_session: Callable[[], HostSession]) -> HostSession:
    return lean_session()


@pytest.fixture(scope="session")
def replayer(home: LeanHome) -> Iterator[Replayer]:
    from treewright.lean.verify.replayer import Replayer

    with Replayer(home) as shared:
        yield shared


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of compiled modules of Lake projects, for all tests of a worker."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def lent_lean(
    monkeypatch: pytest.MonkeyPatch,
    lean_session: Callable[[], HostSession],
    replayer: Replayer,
) -> None:
    """Lend the worker's Lean to code that starts Lean in this process, where possible; see
    here.py."""
    from tests.here import lend_lean

    lend_lean(monkeypatch, lean_session, replayer)


@pytest.fixture
def treewright_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lent_lean: None
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs the program in this process, on the worker's Lean; see
    here.py."""
    from tests.here import run_here

    def run(
        *args: str, cwd: Path | None = None, input: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return run_here(monkeypatch, args, cwd or tmp_path, input)

    return run
