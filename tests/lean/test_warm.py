"""Warm Lean processes: found by other calls, handed over once, never in the way of a verdict."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from treewright.kernel.errors import LockActive, UsageError
from treewright.kernel.procs import private_socket
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.lean.warm import identity, wire
from treewright.lean.warm.client import WarmHost, warmed
from treewright.lean.warm.server import WarmServer

pytestmark = [
    pytest.mark.xdist_group("warm"),
    pytest.mark.skipif(not private_socket.is_supported(), reason="needs SO_PEERCRED and /proc"),
]


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TREEWRIGHT_STATE", str(tmp_path / ("long " * 30)))


class Running:
    """A server in a thread, with what it said."""

    def __init__(self, home: LeanHome, **options: float) -> None:
        self.said: list[str] = []
        self.ready = threading.Event()
        self._stop = threading.Event()
        self.server = WarmServer(home, announce=self._announce, **options)  # pyright: ignore
        self._thread = threading.Thread(target=self.server.run, args=(self._stop.is_set,))
        self._thread.start()

    def _announce(self, text: str) -> None:
        self.said.append(text)
        if "ready" in text:
            self.ready.set()

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def server(home: LeanHome) -> Iterator[Running]:
    running = Running(home, processes=1)
    try:
        assert running.ready.wait(300)
        yield running
    finally:
        running.end()


def test_a_call_takes_processes_and_they_are_its_own(server: Running, home: LeanHome) -> None:
    said: list[str] = []
    with warmed(home, said.append) as host:
        assert isinstance(host, WarmHost)
        first = HostSession(host)
        try:
            server.end()  # whoever was handed a process needs no server any more
            state = first.start("1 + 1 = 2")
            assert isinstance(state, ProofState)
            done = first.run_tactic(state, "rfl")
            assert isinstance(done, ProofState)
            assert done.closed
            assert first.info.backend == "wasm"
            pid = first.pid
            with HostSession(host) as second:  # the server is gone: this one is started here
                assert second.pid != pid
        finally:
            first.close()
    assert host.taken == 1
    assert "has ready" in said[0]
    assert "starting Lean here" in said[-1]
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


def test_no_verdict_is_made_in_a_process_from_there(server: Running, home: LeanHome) -> None:
    """Whoever once ran code as this user may be who listens."""
    with warmed(home) as host, Replayer(host) as replayer:
        assert isinstance(host, WarmHost)
        assert host.judging() is host.started_here() is home
        assert replayer.theorem("1 + 1 = 2", "rfl").proved
        assert host.taken == 0


def test_nobody_else_can_open_it(server: Running, home: LeanHome) -> None:
    place = identity.directory()
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / identity.socket_name(home)).stat().st_mode) == 0o600
    with pytest.raises(LockActive, match="already"):
        WarmServer(home).run()
    place.chmod(0o755)
    said: list[str] = []
    with warmed(home, said.append) as host:
        assert host is home
    assert "open to others" in said[0]
    with pytest.raises(UsageError, match="chmod 700"):
        private_socket.make_private(place)


def test_it_ends_by_itself(home: LeanHome) -> None:
    running = Running(home, processes=0, idle_seconds=0.0)
    running._thread.join(300)
    assert not running._thread.is_alive()
    assert "nobody asked" in running.said[0]
    assert not list(identity.directory().glob("*.sock"))


def test_a_call_is_waited_for_however_long_it_takes(home: LeanHome) -> None:
    """If it were dropped, others would be started beside it."""
    running = Running(home, processes=0)
    try:
        with contextlib.ExitStack() as stack:
            while not isinstance(stack.enter_context(warmed(home)), WarmHost):
                assert running._thread.is_alive()
            assert [caller.gettimeout() for caller in running.server._callers] == [None]
    finally:
        running.end()


class _Other:
    """Who listens where a server would, and says something else."""

    def __init__(self, home: LeanHome, *answers: bytes) -> None:
        private_socket.make_private(identity.directory())
        self._listening = private_socket.listen(identity.directory(), identity.socket_name(home))
        self._answers = answers
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with connection, contextlib.suppress(ConnectionError):
            for number, answer in enumerate(self._answers):
                if number:
                    connection.recv(100)
                connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(100):
                pass

    def end(self) -> None:
        self._thread.join()
        self._listening.close()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b'{"identity": "another", "pid": 1}\n', "has another Lean"),
        (b"{}\n", "does not answer"),
        (b"\xff\n", "does not answer"),
        (b"", "does not answer"),
        (b"x" * 10_000, "does not answer"),
    ],
)
def test_another_lean_and_nonsense_are_not_used(home: LeanHome, answer: bytes, why: str) -> None:
    other = _Other(home, answer)
    said: list[str] = []
    with warmed(home, said.append) as host:
        assert host is home
    other.end()
    assert [why in line for line in said] == [True]


def test_a_server_that_stops_in_the_middle(home: LeanHome) -> None:
    hello = msgspec.json.encode(wire.Hello(identity.identity(home), 1)) + b"\n"
    other = _Other(home, hello, b'{"pid": 1, "marker": "x"}\n')
    said: list[str] = []
    with warmed(home, said.append) as host:
        assert isinstance(host, WarmHost)
        assert host.take() is None  # a process without descriptors is none
        assert host.take() is None
    other.end()
    assert [line.endswith("starting Lean here") for line in said] == [False, True]


def test_the_program_serves_and_a_killed_server_is_no_verdict(
    home: LeanHome, tmp_path: Path
) -> None:
    """The real program: one serves, one proves with its processes; and after it was killed."""
    program = [sys.executable, "-m", "treewright", "prove"]
    env = dict(os.environ)
    with subprocess.Popen(
        [*program, "--serve"], stderr=subprocess.PIPE, text=True, env=env
    ) as serving:
        assert serving.stderr is not None
        while "are ready" not in (line := serving.stderr.readline()):
            assert line, "the server ended"
        call = [*program, "--statement", "1 + 1 = 2", "--json"]
        served = subprocess.run(
            call, cwd=tmp_path, capture_output=True, text=True, env=env, check=False
        )
        serving.send_signal(signal.SIGKILL)
        serving.wait()
    assert served.returncode == 0, served.stderr
    assert '"status":"proved"' in served.stdout
    assert f"`treewright prove --serve` ({serving.pid}) has ready" in served.stderr
    said: list[str] = []
    with warmed(home, said.append) as host:
        assert host is home
    assert said == ["the server with warm Lean processes is gone; starting Lean here"]
