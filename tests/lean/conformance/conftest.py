"""Every Lean that is here, one after the other: the bundled one always, a native one if found.

A toolchain is looked for as the program does it: TREEWRIGHT_LEAN, elan, PATH.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from treewright.kernel.cache import STATE_VARIABLE, state_directory
from treewright.lean.host import Host
from treewright.lean.host_session import HostSession
from treewright.lean.native import toolchain
from treewright.lean.native.host import NativeHost
from treewright.lean.replay import Replayer
from treewright.lean.wasm.home import LeanHome

# Read before the tests' own environment is cleared of such settings.
_GIVEN = os.environ.get(toolchain.VARIABLE)
_OWN = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
_STATE = state_directory()


@cache
def found_native() -> NativeHost | str:
    """The native host without a project, or why there is none."""
    with pytest.MonkeyPatch.context() as patch:
        if _GIVEN:
            patch.setenv(toolchain.VARIABLE, _GIVEN)
        for name, value in _OWN.items():
            patch.setenv(name, value)
        found = toolchain.find_toolchain(None)
        if isinstance(found, str):
            return found
        return toolchain.too_old(found) or NativeHost(found)


@pytest.fixture(autouse=True)
def _own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native host's program is sealed with the user's key: compiled once, not for each run."""
    if not isinstance(found_native(), str):
        monkeypatch.setenv(STATE_VARIABLE, str(_STATE))


@pytest.fixture(scope="session")
def native() -> NativeHost:
    found = found_native()
    if isinstance(found, str):
        pytest.skip(f"no native host: {found}")
    return found


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
