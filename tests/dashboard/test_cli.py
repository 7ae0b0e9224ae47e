"""`treewright dashboard` and `treewright export` as users call them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dashboard import samples
from tests.dashboard.serving import served
from tests.toy import ToyRepository
from treewright.kernel.storage.lease import latest_epoch


def tree_of(path: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for place in sorted(path.rglob("*")):
        if place.is_file():
            state = place.stat()
            found[place.relative_to(path).as_posix()] = (state.st_size, state.st_mtime_ns)
    return found


def test_the_dashboard_writes_no_file_and_holds_no_lock(
    searched: ToyRepository, run_dir: Path
) -> None:
    before, epoch = tree_of(run_dir), latest_epoch(run_dir / "lease")
    for _ in range(2):
        with served("--runs", searched.path) as running:
            for path in ("/api/runs", "/api/tree/0/run", "/api/tree/0/run/item/n0001",
                         "/api/tree/0/run/diff/n0001"):  # fmt: skip
                assert running.get(path).status_code == 200
        assert running.process.returncode == -signal.SIGKILL
    assert tree_of(run_dir) == before
    assert latest_epoch(run_dir / "lease") == epoch


def test_an_interrupt_ends_the_dashboard_in_order(tmp_path: Path) -> None:
    with served("--runs", tmp_path) as running:
        assert running.get("/api/health").status_code == 200
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) in (0, 130, -signal.SIGINT)


def test_a_port_in_use_is_a_one_line_error(treewright, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = treewright("dashboard", "--port", str(port))
    assert done.returncode == 2
    assert done.stderr == (
        f"treewright: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        "choose another with --port\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--runs", "nowhere"], "no directory nowhere; give a project or a run with --runs"),
        (["--token", " "], "the token is empty"),
        (["--port", "99999"], "99999 is not in the range"),
    ],
)
def test_a_wrong_dashboard_call_is_an_error(treewright, arguments: list[str], said: str) -> None:
    done = treewright("dashboard", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_error_without_the_extra_names_the_package(tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError('no uvicorn')\n")
    done = subprocess.run(
        [sys.executable, "-m", "treewright", "dashboard"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'treewright[dashboard]'" in done.stderr


def test_export_by_id_and_by_directory(treewright, searched: ToyRepository, run_dir: Path,
                                       tmp_path: Path) -> None:  # fmt: skip
    by_id = treewright("export", samples.RUN_ID, "a.html", "--repo", str(searched.path))
    assert (by_id.returncode, by_id.stdout) == (0, "a.html\n"), by_id.stderr
    by_directory = treewright("export", str(run_dir), str(tmp_path / "b.html"))
    assert by_directory.returncode == 0
    text = (tmp_path / "b.html").read_text(encoding="utf-8")
    assert text.count("<script") == 2, "the data and the page's own; no third from an idea"
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing", "x.html"], "no run nothing; give the directory of a run, or its id"),
        ([".", "x.html"], "no run ."),
        (["nothing", "no/where/x.html"], "make it first"),
    ],
)
def test_an_impossible_export_is_an_error(treewright, arguments: list[str], said: str) -> None:
    done = treewright("export", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
