"""The core without POSIX-only features; see `tests/without_posix.py` for the limits of this test.

Real Windows and macOS are not tested here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.toy import SWEEP, ToyRepository
from tests.waiting import until

_ROOT = Path(__file__).resolve().parent.parent
_SECONDS = 600

_IMPORT_ALL = """
import importlib, pkgutil, treewright
for found in pkgutil.walk_packages(treewright.__path__, "treewright."):
    if not {"templates", "programs", "__main__"} & set(found.name.split(".")):
        importlib.import_module(found.name)
        print(found.name)
"""

_SEARCH = """
import sys, treewright
with treewright.open_search(sys.argv[1], policy="random", seed=1, budget=8, lookahead=3) as search:
    search.run(lambda task: float(task.number), workers=3)
    print(search.evaluations, search.is_over)
"""

_TIME_LIMIT = """
import sys, threading
from pathlib import Path
from treewright.kernel.procs import process, proctree
from treewright.kernel.procs.containment import Limits
from treewright.kernel.errors import UsageError
def run(line, name, **more):
    return process.run(line, cwd=Path("."), log_path=Path(name), owner="of-this-test", **more)
def left():
    return proctree.marked("of-this-test:", prefix=True)
done = run("echo said; sleep 1000 & sleep 1000", "log", timeout=5)
print(done.timed_out, Path("log").read_text().startswith("said"), left())
done = run("sleep 1000 & echo left", "left")
print(done.ok, Path("left").read_text().strip(), left())
done = run("cat", "fed", stdin=b"x" * 1_000_000)
print(done.ok, Path("fed").stat().st_size)
cancel = threading.Event()
threading.Timer(1, cancel.set).start()
print(run("sleep 1000", "cancelled", cancel=cancel).cancelled)
try:
    run("true", "limited", limits=Limits(memory_mb=100))
except UsageError as refused:
    print(refused)
"""

_LEASE = """
import os, time
from pathlib import Path
from treewright.kernel.errors import LockActive
from treewright.kernel.storage.lease import Lease
owned = Lease.acquire(Path("lease"), stale_seconds=600)
owned.release()
owned = Lease.acquire(Path("lease"), stale_seconds=0.6)
file = Path("lease/000002.json")
os.utime(file, (1, 1))
while file.stat().st_mtime == 1:
    time.sleep(0.01)
try:
    Lease.acquire(Path("lease"), stale_seconds=600)
except LockActive:
    print("beats", owned.is_in_place())
taken = Lease.acquire(Path("lease"), force=True)
print(taken.epoch, taken.owner.takeover)
"""

_LOCK = """
import sys, threading
from pathlib import Path
from treewright.kernel.storage import file_lock
inside = []
def work():
    for _ in range(20):
        with file_lock.holding(Path("lock")):
            inside.append(1)
            assert len(inside) == 1
            inside.pop()
threads = [threading.Thread(target=work) for _ in range(4)]
[each.start() for each in threads]
[each.join() for each in threads]
print("alone")
"""


def _run(*arguments: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.without_posix", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == code, done.stderr
    return done


def _script(tmp_path: Path, text: str, *arguments: str) -> str:
    path = tmp_path / "script.py"
    path.write_text(text)
    return _run(str(path), *arguments, cwd=tmp_path).stdout


def test_a_tree_run_works_from_init_to_report(toy: ToyRepository) -> None:
    def tree(*more: str) -> subprocess.CompletedProcess[str]:
        return _run("treewright", "tree", "--tree-run-id", "night", *more, cwd=toy.path)

    shape = ("--sweep-config-limit", "10", "--max-depth", "2", "--max-parallel-evals", "2")
    shape += ("--beam-width", "2")
    _run("treewright", "tree", "--dry-run", "--tree-run-id", "dry", *shape, cwd=toy.path)
    assert json.loads(tree(*shape).stdout)["current_depth"] == 1
    ended = json.loads(tree("--until-done").stdout)
    assert ended["stop_reason"] in ("max_depth_reached", "no_new_ideas")
    assert ended["best"]["primary_gain"] == pytest.approx(2.0)
    run = toy.path / ".treewright" / "tree_runs" / "night"
    (run / "TREE_SUMMARY.md").unlink()
    tree("--report-only")
    assert "# " in (run / "TREE_SUMMARY.md").read_text()
    assert not (run / "cand").exists() or not list((run / "cand").iterdir())
    tree("--validate-only")
    page = toy.path / "run.html"
    _run("treewright", "export", "night", str(page), cwd=toy.path)
    assert page.stat().st_size > 0


def test_a_killed_run_is_found_and_continued(toy: ToyRepository, tmp_path: Path) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    waits = f"echo $$ >> {began}; test -e {go} || sleep 1000"
    toy.write("sweep.sh", f'{SWEEP}case "$PWD" in */cand/*) {waits};; esac\n')
    toy.commit("A sweep that waits")
    arguments = ["tree", "--tree-run-id", "night", "--sweep-config-limit", "10", "--max-depth", "1"]
    first = subprocess.Popen(
        [sys.executable, "-m", "tests.without_posix", "treewright", *arguments],
        cwd=toy.path,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(began.exists)
    first.kill()
    first.wait()
    go.touch()
    again = json.loads(_run("treewright", *arguments, cwd=toy.path).stdout)
    assert again["stop_reason"] == "max_depth_reached"
    assert again["best"]["primary_gain"] == pytest.approx(2.0)
    waiting = int(began.read_text().split()[0])
    until(lambda: not psutil.pid_exists(waiting))


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    found = _script(tmp_path, _IMPORT_ALL).split()
    assert {
        "treewright.cli.portfolio",
        "treewright.mcp_server.server",
        "treewright.lean.processes",
    } < set(found)


def test_a_library_search_runs_with_threads(tmp_path: Path) -> None:
    assert _script(tmp_path, _SEARCH, str(tmp_path / "search")) == "8 True\n"
    assert _script(tmp_path, _SEARCH, str(tmp_path / "search")) == "8 True\n", "opened again"


def test_ending_a_command_ends_its_children(tmp_path: Path) -> None:
    assert _script(tmp_path, _TIME_LIMIT).splitlines() == [
        "True True []",
        "True left []",
        "True 1000000",
        "True",
        "a limit on the memory or the files of a command needs a POSIX system; "
        "on Windows run it in WSL 2",
    ]


def test_a_lock_is_held_by_one_thread(tmp_path: Path) -> None:
    assert _script(tmp_path, _LOCK) == "alone\n"


def test_a_lease_has_a_heartbeat_and_one_owner(tmp_path: Path) -> None:
    assert _script(tmp_path, _LEASE) == "beats True\n3 forced\n"


def test_doctor_lists_missing_features(toy: ToyRepository) -> None:
    said = _run("treewright", "doctor", cwd=toy.path).stdout
    assert "psutil finds every descendant of a command" in said
    assert "not POSIX: " in said
    assert "WSL 2" in said


@pytest.mark.parametrize("command", ["prove", "bank", "bg", "lean", "mcp", "sorries"])
def test_a_command_that_needs_posix_is_refused_in_one_line(tmp_path: Path, command: str) -> None:
    said = _run("treewright", command, cwd=tmp_path, code=2).stderr
    assert said == (
        f"treewright: `treewright {command}` needs a POSIX system; on Windows run it in WSL 2\n"
    )


def test_init_writes_a_configuration(toy: ToyRepository) -> None:
    (toy.path / "treewright.toml").unlink()
    toy.commit("Without a configuration")
    _run("treewright", "init", cwd=toy.path)
    assert "[sweep]" in (toy.path / "treewright.toml").read_text()
