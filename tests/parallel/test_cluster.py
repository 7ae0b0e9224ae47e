"""Evaluations on a real cluster of separate processes that share no disk with the coordinator."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import treewright as package
from tests import program
from tests.decisions import decisions, events, repeated_evaluations
from tests.parallel.cluster import Cluster, Isolation, cluster, isolation
from tests.parallel.harness import REAL, REAL_FLAGS, eventually, search
from tests.toy import ToyRepository, set_parameter
from tests.tree.steady.running import REAL as STEADY
from tests.tree.steady.running import as_bytes, steady
from treewright.kernel.executors import dask
from treewright.kernel.procs import proctree
from treewright.tree.evaluating import remote_executor
from treewright.tree.evaluating.remote_worker import start_ref
from treewright.tree.records import store
from treewright.tree.records.model import UNSET, Manifest
from treewright.tree.run.cleanup import Retention, process_owner
from treewright.tree.run.parallelism import Parallelism
from treewright.tree.validation import validate

pytestmark = pytest.mark.xdist_group("cluster")
SLOW = "touch {gate}/pid-$$; while [ -e {gate}/hold ]; do sleep 0.05; done; sh sweep.sh"


@pytest.fixture(scope="module")
def apart(tmp_path_factory) -> Isolation:
    return isolation(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def machines(apart) -> Iterator[Cluster]:
    with cluster(3, apart) as made:
        yield made


@pytest.fixture
def private(apart) -> Iterator[Cluster]:
    """A cluster that a test may break."""
    with cluster(2, apart) as made:
        yield made


@pytest.fixture(scope="module")
def serial(tmp_path_factory) -> dict:
    """The decisions of the serial run, which never waits."""
    toy = ToyRepository.create(tmp_path_factory.mktemp("serial") / "target repo")
    return decisions(search(toy.path, "run", REAL))


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """Return a directory that every sweep can see; sweeps wait while it holds a file `hold`."""
    made = Path("/tmp") / f"treewright-gate-{os.getpid()}-{time.monotonic_ns()}"
    made.mkdir()
    made.chmod(0o777)
    (made / "hold").touch()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def gated(toy: ToyRepository, gate: Path) -> ToyRepository:
    text = (toy.path / "treewright.toml").read_text()
    toy.write("treewright.toml", text.replace("sh sweep.sh", SLOW.format(gate=gate)))
    toy.commit()
    return toy


def add_paid_planner(toy: ToyRepository) -> None:
    """Make each evaluation cost a hundred tokens and a cent before its sweep."""
    usage = {"prompt_tokens": 100, "cost_usd": 0.01}
    paid = [{"role": "planner", "text": "do it", "usage": usage}]
    toy.write("script.json", json.dumps(paid))
    planner = '[agents.planner]\nbackend = "scripted"\nscript = "script.json"\n'
    toy.write("treewright.toml", f"{(toy.path / 'treewright.toml').read_text()}\n{planner}")
    toy.commit("a planner that costs something")


def have_twins(toy: ToyRepository) -> None:
    """Write two ideas for the same code."""
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    toy.write("ideas/0.md", set_parameter("A", 2.0))
    toy.write("ideas/1.md", set_parameter("A", 2.0).replace("A reason.", "Another reason."))
    toy.commit("an idea in other words")


def expected(toy: ToyRepository, gate: Path | None = None) -> dict:
    """Return the decisions of a serial run that never waits."""
    if gate is not None:
        (gate / "hold").unlink()
    found = search(toy.path, "run", REAL)
    made = decisions(found)
    aside = found.with_name("serial")
    found.rename(aside)
    for line in toy.git("worktree", "list", "--porcelain").splitlines():
        if line.startswith("worktree ") and "tree_runs/run" in line:
            toy.git("worktree", "prune")
    for branch in toy.git("for-each-ref", "--format=%(refname)", "refs/heads/treewright").split():
        toy.git("update-ref", "-d", branch)
    if gate is not None:
        (gate / "hold").touch()
        clear(gate)
    return made


def command(toy: ToyRepository, address: str, *more: str) -> list[str]:
    return [
        "tree", *REAL_FLAGS, "--tree-run-id", "run",
        "--repo", str(toy.path), "--parallel-backend", "dask", "--cluster", address, *more,
    ]  # fmt: skip


def run(toy: ToyRepository, address: str, *more: str) -> subprocess.CompletedProcess[str]:
    return program.run(command(toy, address, *more))


def started(toy: ToyRepository) -> list[str]:
    path = toy.run_dir("run")
    if not (path / "events.jsonl").exists():
        return []
    return [event["eval_id"] for event in events(path) if event["type"] == "started"]


def waiting(gate: Path) -> set[int]:
    """Return the sweeps that have begun."""
    return {int(path.name.removeprefix("pid-")) for path in gate.glob("pid-*")}


def clear(gate: Path) -> None:
    for path in gate.glob("pid-*"):
        path.unlink()


def parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def sweeps(toy: ToyRepository) -> list[int]:
    """Return the processes of this run's evaluations on this machine."""
    prefix = process_owner(toy.run_dir("run"), 0).removesuffix("0")
    return proctree.marked(prefix, prefix=True)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_any_number_of_workers_gives_the_same_tree(machines, toy, serial, workers, caplog):
    on_cluster = Parallelism(workers, "dask", machines.address)
    run_dir = search(toy.path, "run", REAL, parallelism=on_cluster)
    assert decisions(run_dir) == serial
    names = {e["worker"] for e in events(run_dir) if e["type"] == "completed"}
    pids = {process.pid for process in machines.workers.values()}
    assert {int(name.rpartition(":")[2]) for name in names} <= pids
    assert ("room for 3 evaluations at once" in caplog.text) == (workers == 8)


def test_a_cluster_gives_the_same_search_without_a_barrier(machines, toy):
    steady(toy.path, "here", "best-first", STEADY)
    on_cluster = Parallelism(3, "dask", machines.address)
    manifest = steady(toy.path, "there", "best-first", STEADY, parallelism=on_cluster)
    assert as_bytes(toy.run_dir("there")) == as_bytes(toy.run_dir("here"))
    assert manifest.spent.confirmations > 1
    assert validate(toy.run_dir("there"), toy.path) == []
    logs = list(toy.run_dir("there").glob("eval/*/experiment/*_heldout.log"))
    assert len(logs) == manifest.spent.confirmations


def test_a_shallow_clone_gives_the_same_tree(machines, toy, tmp_path):
    """Its commits name parents that no repository has."""
    for number in range(3):
        toy.write("notes.txt", f"{number}\n")
        toy.commit(f"history {number}")
    cut = ToyRepository(tmp_path / "shallow")
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", toy.path.as_uri(), str(cut.path)], check=True
    )
    assert cut.git("rev-parse", "--is-shallow-repository") == "true\n"
    serial = expected(cut)
    on_cluster = Parallelism(3, "dask", machines.address)
    run_dir = search(cut.path, "run", REAL, parallelism=on_cluster)
    assert decisions(run_dir) == serial
    assert validate(run_dir, cut.path) == []


def test_a_bundle_is_packed_once(machines, toy, serial, monkeypatch):
    packed: list[str] = []
    real = remote_executor._pack

    def pack(request, name):
        packed.append(start_ref(request))
        return real(request, name)

    monkeypatch.setattr(remote_executor, "_pack", pack)
    on_cluster = Parallelism(3, "dask", machines.address)
    run_dir = search(
        toy.path, "run", REAL, parallelism=on_cluster, retention=Retention(rejected_worktrees=True)
    )
    assert decisions(run_dir) == serial
    assert len(packed) == len(set(packed)) > 1
    rejected = {e for e, v in serial["evaluations"].items() if v["candidate_commit"]} - {
        n["artifacts"]["promoted_from_eval_id"] for n in serial["nodes"].values()
    }
    assert {path.name for path in (run_dir / "cand").iterdir()} == rejected
    assert validate(run_dir, toy.path) == []


def test_workers_can_neither_read_nor_locate_the_coordinators_files(machines, toy, apart):
    import distributed  # importing it takes each test worker half a second

    if apart.holds:
        with distributed.Client(machines.address, timeout=120) as client:
            answers: Any = client.run(os.listdir, str(toy.path), on_error="return")
            assert all(isinstance(answer, OSError) for answer in answers.values())
    talkative = (toy.path / "sweep.sh").read_text() + "\nenv; pwd; git rev-parse --git-dir\n"
    toy.write("sweep.sh", talkative)
    toy.commit()
    done = run(toy, machines.address, "--max-parallel-evals", "3")
    assert done.returncode == 0, done.stderr
    logs = list(toy.run_dir("run").glob("eval/e*/experiment/sweep.log"))
    assert len(logs) > 4
    for log in logs:
        text = log.read_text()
        assert str(toy.path) not in text
        assert str(machines.directory) in text
    left = [p for p in machines.directory.glob("w*/**/treewright-*") if p.is_dir()]
    assert left == [], "workers clean up after themselves"


def test_caps_hold_on_a_cluster_and_can_be_raised(machines, toy) -> None:
    add_paid_planner(toy)
    flags = ("--max-parallel-evals", "3", "--ideas-per-node", "5", "--max-depth", "1")
    capped = (*flags, "--max-tokens", "planner=350", "--max-cost-usd", "0.045")

    def go_on(*more: str) -> Manifest:
        done = run(toy, machines.address, *more)
        assert done.returncode == 0, done.stderr
        return store.load(toy.run_dir("run"))

    early = go_on(*capped, "--max-hours", "1e-9")
    assert (early.stop_reason, early.spent.prompt_tokens) == (None, 0), "the hours of a call"
    found = go_on(*capped)
    assert (found.stop_reason, found.spent.prompt_tokens) == ("cap_reached", 300)
    found = go_on(*flags, "--extend", "--max-tokens", "planner=1000")
    assert (found.stop_reason, found.spent.cost_usd) == ("cap_reached", 0.04)
    found = go_on(*flags, "--extend", "--max-cost-usd", "1")
    assert found.spent.prompt_tokens == 500
    assert validate(toy.run_dir("run"), toy.path) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_recorded_results_of_the_same_code_are_used_on_a_cluster(
    machines, toy, workers: int
) -> None:
    """Two workers that have the same code at the same moment may both measure it."""
    have_twins(toy)
    flags = ("--max-parallel-evals", str(workers), "--max-depth", "1", "--ideas-per-node", "2")
    done = run(toy, machines.address, *flags)
    assert done.returncode == 0, done.stderr
    found = store.load(toy.run_dir("run")).evaluations
    sources = {eval_id: each.results_from for eval_id, each in found.items()}
    used = {"e000001": UNSET, "e000002": "e000001"}
    if workers == 1:
        assert sources == used
    else:
        assert list(sources.values()).count(UNSET) >= 1
    assert all(each.results_csv is not None for each in found.values())
    for eval_id, source in sources.items():
        log = toy.run_dir("run") / found[eval_id].experiment_dir / "sweep.log"
        assert log.exists() == (source is UNSET)
    assert validate(toy.run_dir("run"), toy.path) == []


@pytest.mark.parametrize("is_wanted", [True, False])
def test_results_of_an_earlier_run_are_reused_on_a_cluster(machines, toy, is_wanted: bool) -> None:
    text = (toy.path / "treewright.toml").read_text()
    if is_wanted:
        toy.write("treewright.toml", text.replace("[sweep]", "[sweep]\nreuse_results = true"))
        toy.commit("results of earlier runs")
    flags = ("--max-parallel-evals", "2", "--max-depth", "1", "--ideas-per-node", "1")
    for name in ("earlier", "run"):
        done = run(toy, machines.address, *flags, "--tree-run-id", name)
        assert done.returncode == 0, done.stderr
    (found,) = store.load(toy.run_dir("run")).evaluations.values()
    assert found.results_from == ("earlier/e000001" if is_wanted else UNSET)
    assert (toy.run_dir("run") / found.experiment_dir / "sweep.log").exists() != is_wanted
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_killed_worker_costs_one_attempt_and_leaves_no_process(private, gated, gate):
    add_paid_planner(gated)
    serial = expected(gated, gate)
    with program.start(
        command(gated, private.address, "--max-parallel-evals", "2"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as coordinator:  # fmt: skip
        eventually(lambda: len(waiting(gate)) == 2, "two sweeps run")
        of_w1 = next(p for p in waiting(gate) if parent(p) == private.workers["w1"].pid)
        private.end("w1")
        eventually(lambda: not Path(f"/proc/{of_w1}").exists(), "the dead worker's sweep is gone")
        (gate / "hold").unlink()
        private.start_worker("w3")
        _, stderr = coordinator.communicate(timeout=240)
    assert coordinator.returncode == 0, stderr
    found = events(gated.run_dir("run"))
    lost = [e for e in found if e["type"] == "requeued" and e["reason"] == "worker_lost"]
    assert len(lost) == 1
    assert not lost[0].get("usage", {}).get("prompt_tokens"), "what it had spent is unknown"
    assert decisions(gated.run_dir("run")) == serial
    assert sweeps(gated) == []


def test_a_killed_coordinator_loses_no_results_and_its_tasks_end(private, gated, gate):
    serial = expected(gated, gate)
    arguments = command(gated, private.address, "--max-parallel-evals", "2")
    with program.start(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        eventually(lambda: len(waiting(gate)) == 2, "two sweeps run")
        (gate / "hold").unlink()
        eventually(
            lambda: any(e["type"] == "completed" for e in events(gated.run_dir("run"))),
            "an evaluation is completed",
        )
        (gate / "hold").touch()
        first.kill()
    eventually(lambda: not sweeps(gated), "the workers notice that nobody waits")
    (gate / "hold").unlink(missing_ok=True)
    done = run(gated, private.address, "--max-parallel-evals", "2")
    assert done.returncode == 0, done.stderr
    assert decisions(gated.run_dir("run")) == serial
    assert repeated_evaluations(gated.run_dir("run")) == []


def test_a_killed_scheduler_is_reported_in_time_and_the_run_can_continue(
    private, gated, gate, treewright
):
    serial = expected(gated, gate)
    with program.start(
        command(gated, private.address, "--max-parallel-evals", "2"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as coordinator:  # fmt: skip
        eventually(lambda: len(waiting(gate)) == 2, "two sweeps run")
        assert private.scheduler is not None
        private.scheduler.kill()
        began = time.monotonic()
        _, stderr = coordinator.communicate(timeout=240)
    assert time.monotonic() - began < 200
    assert coordinator.returncode == 1, stderr
    assert stderr.strip().splitlines()[-1].startswith("treewright: the connection to the dask")
    assert "Traceback" not in stderr
    (gate / "hold").unlink()
    done = treewright(
        "tree", *REAL_FLAGS, "--tree-run-id", "run", "--repo", str(gated.path),
        "--max-parallel-evals", "2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert decisions(gated.run_dir("run")) == serial


def test_a_worker_with_another_version_is_refused_before_any_evaluation(private, toy):
    other = private.directory / "other version"
    shutil.copytree(Path(package.__file__).parent, other / "treewright")
    init = other / "treewright" / "__init__.py"
    init.write_text(re.sub(r'__version__ = "[^"]+"', '__version__ = "0.0.1"', init.read_text()))
    private.start_worker("old", PYTHONPATH=str(other))
    private.wait_for_workers()
    done = run(toy, private.address, "--max-parallel-evals", "2")
    assert done.returncode == 1
    assert re.search(r"has treewright 0\.0\.1, this is \S+; install the same", done.stderr)
    assert started(toy) == []
    assert "Traceback" not in done.stderr


def test_workers_can_fetch_from_a_named_remote(machines, toy, serial, tmp_path):
    bare = machines.directory / "origin of this test.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(toy.path), str(bare)], check=True)
    if machines.isolation.user is not None:
        for path in [bare, *bare.rglob("*")]:
            os.chown(path, machines.isolation.user, machines.isolation.user)
    toy.git("remote", "add", "origin", str(bare))
    toy.git("-c", "safe.directory=*", "fetch", "-q", "origin")
    done = run(toy, machines.address, "--max-parallel-evals", "3", "--cluster-remote", "origin")
    assert done.returncode == 0, done.stderr
    assert decisions(toy.run_dir("run")) == serial


def test_a_missing_remote_is_reported_at_once(machines, toy):
    done = run(toy, machines.address, "--cluster-remote", "nowhere")
    assert done.returncode == 2
    assert "has no git remote 'nowhere'" in done.stderr
    assert started(toy) == []


def test_an_address_without_a_scheduler_is_a_one_line_error(toy, monkeypatch):
    monkeypatch.setattr(dask, "_CONNECT_SECONDS", 1)
    nobody = Parallelism(2, "dask", "tcp://127.0.0.1:9")
    with pytest.raises(
        dask.ClusterError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"
    ):
        search(toy.path, "run", REAL, parallelism=nobody)
    assert started(toy) == []
