"""Every Lean that is here, one after the other: the bundled one always, a native one if found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lean import native_projects
from treewright.lean.hosts.host import Host
from treewright.lean.hosts.native.host import NativeHost
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer


@pytest.fixture(autouse=True)
def _own_toolchain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in native_projects.settings().items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def native() -> NativeHost:
    return native_projects.required()


@pytest.fixture(scope="session", params=["wasm", "native"])
def host(request: pytest.FixtureRequest, home: LeanHome) -> Host:
    return home if request.param == "wasm" else request.getfixturevalue("native")


@pytest.fixture(scope="session")
def _native_sessions() -> Iterator[list[HostSession]]:
    started: list[HostSession] = []
    yield started
    for session in started:
        session.close()


@pytest.fixture
def session(
    host: Host, request: pytest.FixtureRequest, _native_sessions: list[HostSession]
) -> HostSession:
    if not isinstance(host, NativeHost):
        return request.getfixturevalue("lean")  # the worker's own
    if not _native_sessions or not _native_sessions[-1].alive:
        _native_sessions.append(HostSession(host))
    _native_sessions[-1].reset()
    return _native_sessions[-1]


@pytest.fixture(scope="session")
def check(host: Host, request: pytest.FixtureRequest) -> Iterator[Replayer]:
    if not isinstance(host, NativeHost):
        yield request.getfixturevalue("replayer")
    else:
        with Replayer(host) as replayer:
            yield replayer


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made
