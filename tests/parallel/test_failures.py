"""Failures that are retried and failures that are answers; strict runs; fairness; wrong flags."""

from __future__ import annotations

import contextlib
import errno
import subprocess
import sys
import threading
import time

import pytest

from tests.decisions import decisions, events, repeated_evaluations
from tests.parallel.harness import DRY, REAL_FLAGS, Shuffled, search
from tests.toy import ToyRepository, idea
from treewright.kernel.executors.protocol import Done, WorkerLost
from treewright.tree.records.model import EvalError, EvalOutcome
from treewright.tree.run.creation import Shape
from treewright.tree.run.faults import Paused
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.outcomes import FailureRules
from treewright.tree.validation import validate

ONE_DEPTH = Shape(ideas_per_node=4, beam_width=2, max_depth=1, sweep_config_limit=8, dry_run=True)


class Failing(Shuffled):
    """An executor on which the second evaluation always fails in the given way."""

    def __init__(self, work, problem) -> None:
        super().__init__(work, seed=0, capacity=2, faults=0.0)
        self._problem = problem

    def next_done(self, timeout: float | None = None) -> Done | None:
        for request in self._waiting:
            if request.eval_id == "e000002":
                self._waiting.remove(request)
                if isinstance(self._problem, Exception):
                    return Done(request, None, self._problem)
                return Done(request, EvalOutcome(error=self._problem))
        return super().next_done(timeout)


def attempts(toy: ToyRepository, problem, **policy) -> tuple[int, str]:
    with contextlib.suppress(Paused):
        search(
            toy.path, "run", ONE_DEPTH,
            make_executor=lambda work: Failing(work, problem),
            policy=FailureRules(first_backoff_seconds=0.0, **policy),
        )  # fmt: skip
    of_it = [e for e in events(toy.run_dir("run")) if e.get("eval_id") == "e000002"]
    tries = sum(e["type"] == "started" for e in of_it)
    if of_it[-1]["type"] == "requeued":
        assert of_it[-1]["paused"], "what is put down to nobody pauses the run"
        return tries, of_it[-1]["reason"]
    assert of_it[-1]["type"] == "failed"
    error = of_it[-1]["outcome"]["error"]
    assert set(error) >= {"code", "message", "retryable"}
    return tries, error["code"]


FAULTS_ONLY = {"retries": 2, "retried": "faults"}


@pytest.mark.parametrize(
    ("problem", "policy", "tries"),
    [
        (EvalError("tests_failed", "no", retryable=False), {}, 1),
        (EvalError("tests_failed", "no", retryable=False), {"retries": 2}, 3),
        (EvalError("tests_failed", "no", retryable=False), FAULTS_ONLY, 1),
        (EvalError("agent_failed", "no", retryable=False), {"retries": 2}, 3),
        (EvalError("agent_failed", "no", retryable=False), FAULTS_ONLY, 1),
        (EvalError("patch_failed", "no", retryable=False), {"retries": 5}, 1),
        (EvalError("patch_failed", "no", retryable=False), {"retries": 2, "retried": "all"}, 3),
        (EvalError("sweep_timeout", "late", retryable=False), {"retries": 1}, 2),
        (EvalError("sweep_timeout", "late", retryable=False), FAULTS_ONLY, 1),
        (EvalError("llm_unavailable", "busy", retryable=True), {"retries": 2}, 3),
        (EvalError("llm_unavailable", "busy", retryable=True), {}, 1),
        (EvalError("llm_unavailable", "busy", retryable=True), FAULTS_ONLY, 3),
        (EvalError("eval_timeout", "late", retryable=True), {"retries": 2}, 3),
        (EvalError("eval_timeout", "late", retryable=True), FAULTS_ONLY, 1),
        (WorkerLost("gone"), {}, 4),
        (WorkerLost("gone"), {"retries": 5}, 6),
        (OSError("disk"), {"retries": 1}, 2),
        (OSError(errno.EAGAIN, "no more processes"), {}, 4),
        (OSError(errno.EMFILE, "too many files"), {"retries": 5}, 6),
    ],
)
def test_each_failure_is_retried_as_often_as_the_rules_say(toy, problem, policy, tries):
    assert attempts(toy, problem, **policy)[0] == tries


def test_a_lack_of_a_resource_names_the_machine(toy):
    assert attempts(toy, OSError(errno.ENOMEM, "no memory"))[1] == "machine_busy"


def test_failing_tests_are_retried_and_a_rejected_patch_is_not(toy, treewright):
    """The tests fail once for every candidate; the patch never applies."""
    toy.write("ideas/00_broken.md", idea("Broken", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-no\n+yes\n"))
    seen = toy.path.parent / "seen"
    seen.mkdir()
    toy.write("tests.sh", FAILS_ONCE.format(seen=seen))
    toy.commit()
    done = treewright(
        "tree", *REAL_FLAGS, "--max-depth", "1", "--tree-run-id", "run", "--repo", str(toy.path),
        "--max-parallel-evals", "3", "--eval-retries", "1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = events(toy.run_dir("run"))
    codes = {e["outcome"]["error"]["code"] for e in found if e["type"] == "failed"}
    assert codes == {"patch_failed"}
    again = {e["eval_id"]: e["reason"] for e in found if e["type"] == "requeued"}
    scored = {e["eval_id"] for e in found if e["type"] == "completed"}
    assert again == dict.fromkeys(scored, "tests_failed")
    assert len(scored) >= 2
    assert validate(toy.run_dir("run"), toy.path) == []


FAILS_ONCE = """\
grep -q 'A 1.0' params.txt && grep -q 'B 1.0' params.txt && grep -q 'C 1.0' params.txt &&
    grep -q 'D 1.0' params.txt && exit 0
mkdir '{seen}'/"$(cksum < params.txt | tr ' ' -)" 2> /dev/null && exit 1
exit 0
"""
"""The root passes; a candidate fails the first time that its parameters are seen."""


def test_a_held_out_sweep_that_failed_once_is_retried(toy, treewright):
    """Each candidate's first held-out sweep fails; the parent's works."""
    seen = toy.path.parent / "seen"
    seen.mkdir()
    first = (
        f"if [ \"$TREEWRIGHT_SWEEP_CONFIG_START\" = 8 ] && ! grep -q 'A 1.0' params.txt; then\n"
        f"  mkdir '{seen}/heldout' 2> /dev/null && exit 1\nfi\n"
    )
    toy.write("sweep.sh", first + (toy.path / "sweep.sh").read_text())
    toy.commit()
    done = treewright(
        "tree", *REAL_FLAGS, "--max-depth", "1", "--tree-run-id", "run", "--repo", str(toy.path),
        "--eval-retries", "1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (seen / "heldout").is_dir()
    confirmed = [e for e in events(toy.run_dir("run")) if e["type"] == "confirmed"]
    assert all(e["confirmation"]["held"] for e in confirmed), confirmed
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_depth_is_decided_by_the_evaluations_that_did_not_fail(toy, treewright):
    toy.write("tests.sh", "grep -q 'A 1.0' params.txt\n")
    toy.commit()
    done = treewright(
        "tree", *REAL_FLAGS, "--max-depth", "1", "--tree-run-id", "run", "--repo", str(toy.path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = events(toy.run_dir("run"))
    assert {e["type"] for e in found} >= {"failed", "completed", "decided"}


def test_backoff_doubles_up_to_a_minute():
    policy = FailureRules(retries=9)
    assert [policy.backoff_seconds(n) for n in (1, 2, 3, 9)] == [1, 2, 4, 60]


def test_a_long_backoff_does_not_keep_a_cancelled_run_waiting(toy):
    cancel = threading.Event()
    policy = FailureRules(retries=3, first_backoff_seconds=600.0)
    request = RunRequest(toy.path, "run", shape=ONE_DEPTH, failure_rules=policy)
    problem = EvalError("llm_unavailable", "busy", retryable=True)

    def observe(event) -> None:
        if type(event).__name__ == "Requeued":
            threading.Timer(0.3, cancel.set).start()

    began = time.monotonic()
    with open_run(request, observe, cancel) as coordinator:
        coordinator.make_executor = lambda work: Failing(work, problem)  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(KeyboardInterrupt):
            coordinator.advance()
    assert time.monotonic() - began < 200


def test_a_lost_worker_does_not_use_up_a_retry(toy):
    problems = [WorkerLost("gone"), WorkerLost("gone"), OSError("disk")]

    class Unlucky(Failing):
        def next_done(self, timeout=None):
            self._problem = problems[0] if problems else None
            if self._problem is None:
                return Shuffled.next_done(self, timeout)
            done = Failing.next_done(self, timeout)
            if done is not None and done.error is not None:
                problems.pop(0)
            return done

    run_dir = search(
        toy.path, "run", ONE_DEPTH,
        make_executor=lambda work: Unlucky(work, None),
        policy=FailureRules(retries=1, first_backoff_seconds=0.0),
    )  # fmt: skip
    of_it = [e for e in events(run_dir) if e.get("eval_id") == "e000002"]
    assert [e["reason"] for e in of_it if e["type"] == "requeued"] == [
        "worker_lost", "worker_lost", "internal_error",
    ]  # fmt: skip
    assert of_it[-1]["outcome"]["error"] is None or of_it[-1]["attempt"] == 4


def test_a_strict_run_drains_stops_and_can_be_continued(toy, treewright):
    toy.write("tests.sh", "grep -q 'A 1.0' params.txt\n")
    toy.commit()
    arguments = [
        "tree", *REAL_FLAGS, "--tree-run-id", "run", "--repo", str(toy.path),
        "--max-parallel-evals", "2", "--strict-fail",
    ]  # fmt: skip
    done = treewright(*arguments)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("treewright: e000001 failed (tests_failed: ")
    assert "Traceback" not in done.stderr
    found = events(toy.run_dir("run"))
    count = {kind: sum(e["type"] == kind for e in found) for kind in ("started", "requeued")}
    settled = sum(e["type"] in ("completed", "failed") for e in found)
    assert count["started"] == settled < 4, "what was under way was finished, nothing else begun"
    again = treewright(*arguments[:-1])
    assert again.returncode == 0, again.stderr
    assert repeated_evaluations(toy.run_dir("run")) == []
    lenient = search(toy.path, "lenient", Shape(4, 2, 2, 8, confirm_configs=4))
    strict, other = decisions(toy.run_dir("run")), decisions(lenient)
    assert _shape_of(strict) == _shape_of(other)


def _shape_of(found: dict) -> list:
    return [(n["tree"], n["idea_chain"]) for n in found["nodes"].values()]


def test_no_parent_exceeds_its_share_of_workers_and_none_starves(toy):
    under_way: dict[str, int] = {}
    together: list[set[str]] = []

    class Counting(Shuffled):
        def submit(self, request):
            super().submit(request)
            under_way[request.parent_node_id] = under_way.get(request.parent_node_id, 0) + 1
            assert under_way[request.parent_node_id] <= 2
            together.append({r.parent_node_id for r in self._waiting})

        def next_done(self, timeout=None):
            done = super().next_done(timeout)
            if done is not None:
                under_way[done.request.parent_node_id] -= 1
            return done

    search(
        toy.path, "run", DRY,
        make_executor=lambda work: Counting(work, 5, 6, 0.0),
        policy=FailureRules(max_per_node=2),
    )  # fmt: skip
    assert max(len(parents) for parents in together) > 1


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--cluster", "tcp://h:1"], "--cluster and --cluster-remote need --parallel-backend dask"),
        (["--cluster-remote", "origin"], "need --parallel-backend dask"),
        (["--max-parallel-evals", "0"], "max-parallel-evals"),
        (["--max-parallel-per-node", "0"], "max-parallel-per-node"),
        (["--eval-retries", "-1"], "eval-retries"),
        (["--eval-timeout-seconds", "0"], "eval-timeout-seconds"),
        (["--parallel-backend", "ray"], "there is no executor 'ray'"),
        (["--retry-failures", "all"], "--retry-failures needs --eval-retries"),
    ],
)
def test_flags_without_effect_are_refused_before_a_run_is_created(toy, treewright, flags, said):
    done = treewright("tree", "--repo", str(toy.path), *flags)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (toy.path / ".treewright").exists()


def test_a_missing_extra_is_named(toy):
    script = (
        "import sys; sys.modules['distributed'] = None\n"
        "from treewright.cli.main import main\n"
        f"sys.argv = ['treewright', 'tree', '--repo', {str(toy.path)!r},"
        " '--parallel-backend', 'dask']\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "pip install 'treewright[dask]'" in done.stderr
