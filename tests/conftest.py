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

# A busy machine is not a failing property. The same examples each time: what a change has not
# touched does not fail beside it. Others are tried with `--hypothesis-profile=anew`.
settings.register_profile("anew", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("here", settings.get_profile("anew"), derandomize=True)
settings.load_profile("here")


@pytest.fixture(autouse=True)
def _isolated_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No test reads the user's git configuration or an outer treewright's variables, or writes to
    the user's state, or waits for requests of another test to an endpoint."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # As in an activated environment: `python` is this one, and no script that looks for one.
    own = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([own, os.environ["PATH"]]))
    for name in list(os.environ):
        if name.startswith("TREEWRIGHT_"):
            monkeypatch.delenv(name)
    # One for all tests of a worker: modules that one has compiled serve the next.
    monkeypatch.setenv("TREEWRIGHT_STATE", str(tmp_path_factory.getbasetemp() / "state"))
    forget_queues()


@pytest.fixture
def toy(tmp_path: Path) -> ToyRepository:
    """A git repository whose sweep is a shell script that takes milliseconds."""
    return ToyRepository.create(tmp_path / "target repo")


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> ToyRepository:
    """A repository with two finished searches, `one` and `two`; see tests/two_runs.py."""
    from tests import two_runs

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        return two_runs.make(tmp_path_factory.mktemp("two_runs"))


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> ToyRepository:
    """A repository with a finished tree run and a finished proof run."""
    from tests.dashboard import proof_runs, samples

    toy = samples.finished(tmp_path_factory.mktemp("searched"))
    proof_runs.solved(toy.path)
    return toy


@pytest.fixture(scope="session")
def server(searched: ToyRepository) -> Iterator[Server]:
    """A dashboard over it, for tests of its answers and of its pages."""
    from tests.dashboard.serving import served

    with served("--runs", searched.path) as running:
        yield running


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Skips where no command can be put into a sandbox, and says why."""
    problem = sandbox.find_problem()
    if problem is not None:
        pytest.skip(f"needs bubblewrap, {problem}")


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


def pytest_configure(config: pytest.Config) -> None:
    """For those who run tests without xdist, `-p no:xdist`."""
    config.addinivalue_line("markers", "xdist_group(name): tests that share a worker")


def pytest_unconfigure() -> None:
    """The one process that is kept to the end of ours."""
    from treewright.kernel.procs.watchdog import watchdog

    watchdog.close()


_GROUPS = {
    "home": "lean-session",  # a Lean that has read some texts reads the next in a third of the time
    "searched": "browser",  # a search that takes a second, and a server over it
}
"""The group of tests by a fixture that they need."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that say nothing else share a worker with those that need the same."""
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


@pytest.fixture(scope="session")
def lean_session(home: LeanHome) -> Iterator[Callable[[], HostSession]]:
    """Gives the worker's session, emptied; another one if an earlier test lost it."""
    from treewright.lean.session.host_session import HostSession

    started: list[HostSession] = []

    def give() -> HostSession:
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
    """Where modules of Lake projects are kept, for all tests of a worker."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def lent_lean(
    monkeypatch: pytest.MonkeyPatch,
    lean_session: Callable[[], HostSession],
    replayer: Replayer,
) -> None:
    """Whoever starts Lean in this process gets the worker's, where that will do; see here.py."""
    from tests.here import lend_lean

    lend_lean(monkeypatch, lean_session, replayer)


@pytest.fixture
def treewright_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lent_lean: None
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the program in this process, on the worker's Lean; see tests/here.py."""
    from tests.here import run_here

    def run(
        *args: str, cwd: Path | None = None, input: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return run_here(monkeypatch, args, cwd or tmp_path, input)

    return run
