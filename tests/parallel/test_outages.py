"""A fault is not a verdict: an outage pauses the run, and the ideas it hit stay untried."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import shutil
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.decisions import decisions, events
from tests.faults.running import Search, evaluations, one_line
from tests.faults.running import search as run_search
from tests.llm.endpoints import Step, completion, stand_in
from tests.parallel.harness import Shuffled, search
from tests.parallel.test_failures import ONE_DEPTH, Failing
from tests.toy import CONFIG, ToyRepository, idea
from tests.tree.test_cheats import new_file
from treewright.kernel.executors.protocol import Done, WorkerLost
from treewright.kernel.procs import process
from treewright.kernel.procs.cancellation import Deadline
from treewright.tree.evaluating.request import HeldoutOutcome, HeldoutRequest
from treewright.tree.records import layout, store
from treewright.tree.records.model import EvalError, EvalOutcome
from treewright.tree.run.creation import Shape
from treewright.tree.run.faults import Paused
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.outcomes import MAX_PAUSES, FailureRules
from treewright.tree.validation import validate

DOWN = EvalError("llm_unreachable", "some-model cannot be reached", retryable=True)
POLICY = FailureRules(first_backoff_seconds=0.0)


class Down(Shuffled):
    """An executor on which every evaluation fails in the same way."""

    def __init__(self, work, problem, capacity: int = 2) -> None:
        super().__init__(work, seed=0, capacity=capacity, faults=0.0)
        self._problem = problem

    def next_done(self, timeout: float | None = None) -> Done | None:
        if not self._waiting:
            return None
        request = self._waiting.pop(0)
        if isinstance(self._problem, Exception):
            return Done(request, None, self._problem)
        return Done(request, EvalOutcome(error=self._problem))


@pytest.mark.parametrize(
    "problem",
    [
        DOWN,
        EvalError("llm_denied", "the key expired"),
        EvalError("agent_failed", "not logged in"),
        WorkerLost("gone"),
        OSError("input/output error"),
    ],
    ids=lambda problem: getattr(problem, "code", type(problem).__name__),
)
def test_a_depth_that_failed_by_an_outage_is_not_decided(toy: ToyRepository, problem):
    expected = decisions(search(toy.path, "run", ONE_DEPTH))
    toy.run_dir("run").rename(toy.path.parent / "undisturbed")
    with pytest.raises(Paused, match="paused at depth 1") as raised:
        search(
            toy.path, "run", ONE_DEPTH, make_executor=lambda work: Down(work, problem),
            policy=POLICY,
        )  # fmt: skip
    assert "\n" not in str(raised.value)
    manifest = store.load(toy.run_dir("run"))
    assert manifest.stop_reason is None
    assert {e.status for e in manifest.evaluations.values()} == {"pending"}
    assert validate(toy.run_dir("run"), toy.path) == []
    assert decisions(search(toy.path, "run", ONE_DEPTH, policy=POLICY)) == expected


def test_an_outage_ends_the_depth_without_trying_all_of_it(toy: ToyRepository):
    shape = ONE_DEPTH
    with pytest.raises(Paused):
        search(
            toy.path, "run", shape, make_executor=lambda work: Down(work, DOWN, capacity=1),
            policy=POLICY,
        )  # fmt: skip
    started = [e for e in events(toy.run_dir("run")) if e["type"] == "started"]
    assert len(started) == 2


def test_an_evaluation_that_pauses_repeatedly_while_others_pass_fails(toy: ToyRepository):
    def once() -> None:
        search(
            toy.path, "run", ONE_DEPTH, make_executor=lambda work: Failing(work, DOWN),
            policy=POLICY,
        )  # fmt: skip

    for _ in range(2):
        with pytest.raises(Paused, match="1 evaluation could not be made"):
            once()
    once()
    error = store.load(toy.run_dir("run")).evaluations["e000002"].error
    assert error is not None
    assert error.code == "llm_unreachable"
    assert validate(toy.run_dir("run"), toy.path) == []


def test_an_unrequested_cancellation_is_retried_before_the_barrier(
    toy: ToyRepository,
):
    """Regression: the evaluation was requeued only in the journal, and the depth was decided
    without it."""
    problem = EvalError("cancelled", "cancelled after 0.1 s", retryable=True)

    class Once(Failing):
        left = 2

        def next_done(self, timeout=None):
            if Once.left and any(r.eval_id == "e000002" for r in self._waiting):
                Once.left -= 1
                return super().next_done(timeout)
            return Shuffled.next_done(self, timeout)

    run_dir = search(
        toy.path, "run", ONE_DEPTH, make_executor=lambda work: Once(work, problem), policy=POLICY
    )
    settled = {e["eval_id"] for e in events(run_dir) if e["type"] in ("completed", "failed")}
    assert settled == set(store.load(run_dir).evaluations)
    assert validate(run_dir, toy.path) == []


def test_an_evaluation_that_is_always_cancelled_pauses_the_run(toy: ToyRepository):
    problem = EvalError("cancelled", "cancelled after 0.1 s", retryable=True)
    with pytest.raises(Paused, match="cancelled"):
        search(
            toy.path, "run", ONE_DEPTH, make_executor=lambda work: Failing(work, problem),
            policy=POLICY,
        )  # fmt: skip
    assert store.load(toy.run_dir("run")).current_depth == 0


def test_a_held_out_sweep_that_is_always_cancelled_pauses_the_run(toy: ToyRepository):
    """Regression: the candidate was recorded as not confirmed."""

    class Cancelled(Shuffled):
        def next_done(self, timeout: float | None = None) -> Done | None:
            for request in self._waiting:
                if isinstance(request, HeldoutRequest):
                    self._waiting.remove(request)
                    return Done(request, HeldoutOutcome(problem="cancelled"))
            return super().next_done(timeout)

    shape = dataclasses.replace(ONE_DEPTH, confirm_configs=4)
    with pytest.raises(Paused, match=r"on the held-out configs \(cancelled\)"):
        search(
            toy.path, "run", shape, make_executor=lambda work: Cancelled(work, 0, 2, 0.0),
            policy=POLICY,
        )  # fmt: skip
    assert store.load(toy.run_dir("run")).current_depth == 0
    found = store.load(search(toy.path, "run", shape, policy=POLICY))
    assert (found.current_depth, found.spent.confirmations) == (1, 1)


@pytest.fixture
def time_is_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file: creating it ends the running evaluation or root check."""
    mark, over = tmp_path / "hangs", list[Deadline]()

    def passed(deadline: Deadline) -> bool:
        if deadline._at is not None and mark.exists():
            mark.unlink()
            over.append(deadline)
        return any(each is deadline for each in over)

    monkeypatch.setattr(Deadline, "passed", property(passed))
    return mark


LIMITED = FailureRules(first_backoff_seconds=0.0, timeout_seconds=600.0)
TWO_IDEAS = Shape(ideas_per_node=2, beam_width=1, max_depth=1, sweep_config_limit=8)


def test_a_model_that_does_not_answer_within_the_evaluation_is_an_outage(
    toy: ToyRepository, time_is_up: Path
):
    """Regression: every candidate failed with `eval_timeout`, and the search ended without a
    promotion."""
    with socket.create_server(("127.0.0.1", 0)) as endpoint:

        def accept() -> None:
            with contextlib.suppress(OSError), contextlib.ExitStack() as silent:
                while True:
                    silent.enter_context(endpoint.accept()[0])
                    time_is_up.touch()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        address = f"http://127.0.0.1:{endpoint.getsockname()[1]}/v1"
        coder = f'backend = "openai"\nendpoint = {{ base_url = "{address}", model = "m" }}\n'
        toy.write("treewright.toml", f"{CONFIG}\n[agents.coder]\n{coder}")
        toy.commit()
        with pytest.raises(Paused, match="llm_timeout: the evaluation's time limit"):
            search(toy.path, "run", TWO_IDEAS, policy=LIMITED)
        endpoint.shutdown(socket.SHUT_RDWR)
        accepting.join()
    found = store.load(toy.run_dir("run"))
    assert found.stop_reason is None
    assert {e.status for e in found.evaluations.values()} == {"pending"}


EDIT = "params.txt\n<<<<<<< SEARCH\nA 1.0\n=======\nA 2.0\n>>>>>>> REPLACE\n"


def test_a_timeout_in_a_later_model_call_does_not_pause_the_run(
    toy: ToyRepository, time_is_up: Path
):
    """The candidate's time ends in its second model call; the other candidate's first call was
    answered."""
    useless, slow = Step(body=completion("Well.")), Step(delay=600, asked=time_is_up.touch)
    with stand_in(useless, slow, Step(body=completion(EDIT))) as endpoint:
        where = f'{{ base_url = "{endpoint.url}", model = "m" }}'
        coder = f'[agents.coder]\nbackend = "openai"\nendpoint = {where}\n'
        toy.write("treewright.toml", f"{CONFIG}\n{coder}")
        toy.commit()
        found = store.load(search(toy.path, "run", TWO_IDEAS, policy=LIMITED)).evaluations
    assert [e.status for e in found.values()] == ["failed", "completed"]
    error = found["e000001"].error
    assert error is not None
    assert error.code == "agent_timeout"


def test_an_agent_that_does_not_end_within_the_evaluation_may_be_an_outage(
    toy: ToyRepository, time_is_up: Path
):
    coder = f"""backend = "command"\ncommand = ["sh", "-c", "touch '{time_is_up}'; sleep 600"]\n"""
    toy.write("treewright.toml", f"{CONFIG}\n[agents.coder]\n{coder}")
    toy.commit()
    with pytest.raises(Paused, match=r"agent_timeout: .*while an agent was at work: time limit"):
        search(toy.path, "run", TWO_IDEAS, policy=LIMITED)
    assert store.load(toy.run_dir("run")).stop_reason is None


def test_hanging_sweeps_pause_the_run_only_if_the_roots_sweep_hangs(
    toy: ToyRepository, time_is_up: Path, tmp_path: Path
):
    """A check of the root's own sweep distinguishes the two cases."""
    down = tmp_path / "down"
    hang = f"touch '{time_is_up}'; exec sleep 600"
    sweep = f"[ ! -e '{down}' ] || {{ {hang}; }}\n[ ! -f x.sh ] || . ./x.sh\n"
    toy.write("sweep.sh", sweep + (toy.path / "sweep.sh").read_text())
    toy.write("ideas/00_help.md", idea("Hang", new_file("x.sh", hang)))
    toy.commit()
    down.touch()
    with pytest.raises(Paused, match="eval_timeout"):
        search(toy.path, "run", TWO_IDEAS, policy=LIMITED)
    down.unlink()
    found = store.load(search(toy.path, "run", TWO_IDEAS, policy=LIMITED))
    error = found.evaluations["e000001"].error
    assert error is not None
    assert error.code == "eval_timeout"
    assert found.evaluations["e000002"].status == "completed"
    assert found.current_depth == 1


def mortal_git(directory: Path, when: str) -> Path:
    """Return a directory for `PATH` with a git that is killed during matching commands, as long as
    a file is not empty.

    The commands are those for which a shell condition holds."""
    real, left = shutil.which("git"), directory / "left"
    (directory / "bin").mkdir()
    git = directory / "bin" / "git"
    git.write_text(
        f"#!/bin/sh\nif {when} && [ -s '{left}' ]; then truncate -s -1 '{left}'; kill -9 $$; fi\n"
        f"exec '{real}' \"$@\"\n"
    )
    git.chmod(0o755)
    return left


@pytest.mark.parametrize("times", [2, 99])
@pytest.mark.parametrize("command", ["apply", "add --all"])
def test_a_killed_git_does_not_fail_the_candidate(
    toy: ToyRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, command: str
):
    """Git is killed on a machine without memory. Regression: the candidate failed with a rejected
    patch or a damaged worktree, and the search ended."""
    left = mortal_git(tmp_path, f"echo \" $* \" | grep -q ' {command} '")
    left.write_text("x" * times)
    expected = decisions(search(toy.path, "run", TWO_IDEAS, policy=POLICY))
    toy.run_dir("run").rename(tmp_path / "undisturbed")
    toy.git("worktree", "prune")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(Paused, match="machine_busy") if times > 9 else contextlib.nullcontext():
        search(toy.path, "run", TWO_IDEAS, policy=POLICY)
    left.write_text("")
    assert decisions(search(toy.path, "run", TWO_IDEAS, policy=POLICY)) == expected


def test_a_candidate_that_gets_git_killed_each_time_fails_in_the_end(
    toy: ToyRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Adding one of its files takes all memory. Regression: the run stopped at this candidate in
    each invocation."""
    toy.write("ideas/00_help.md", idea("Huge", new_file("huge", "x")))
    toy.commit()
    mortal_git(tmp_path, "[ -e huge ]").write_text("x" * 999)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for _ in range(2):
        with pytest.raises(Paused, match="1 evaluation could not be made"):
            search(toy.path, "run", TWO_IDEAS, policy=POLICY)
    found = store.load(search(toy.path, "run", TWO_IDEAS, policy=POLICY))
    error = found.evaluations["e000001"].error
    assert error is not None
    assert error.code == "machine_busy"
    assert found.evaluations["e000002"].status == "completed"
    assert validate(toy.run_dir("run"), toy.path) == []


BROKEN = "exit 3\n"


def test_a_broken_sweep_creates_no_run(toy: ToyRepository):
    toy.write("sweep.sh", BROKEN)
    toy.commit()
    done = run_search(toy, "--max-depth", "1", code=1)
    assert "tried on the root commit" in one_line(done.err)
    assert not toy.run_dir("run").exists()
    assert toy.git("for-each-ref", "refs/heads/treewright", "refs/treewright") == ""
    assert len(toy.git("worktree", "list").splitlines()) == 1
    run_search(
        toy, "--max-depth", "1", "--no-preflight", code=1
    )  # the first failure starts another root check


def test_a_sweep_that_stops_working_pauses_the_run(toy: ToyRepository, tmp_path):
    """The sweep's data is on a disk that has been unplugged."""
    data = tmp_path / "data"
    data.touch()
    sweep = (toy.path / "sweep.sh").read_text()
    toy.write("sweep.sh", f"test -e '{data}' || exit 4\n" + sweep)
    toy.commit()
    flags = ("--ideas-per-node", "3", "--max-depth", "2", "--sweep-config-limit", "8")
    run_search(toy, *flags)
    data.unlink()
    paused = run_search(toy, "--until-done", code=1)
    assert "paused at depth 2" in one_line(paused.err)
    data.touch()
    run_search(toy, "--until-done")
    found = evaluations(toy)
    assert {e["status"] for e in found.values()} == {"completed"}


def test_failing_tests_pause_the_run_only_if_they_fail_on_the_root(
    toy: ToyRepository, tmp_path: Path
):
    """Regression: all candidates failed the tests, and the search ended without a check of the
    root's tests."""
    data = tmp_path / "data"
    data.touch()
    toy.write("tests.sh", f"test -e '{data}' && test ! -f x.sh\n")
    toy.write("ideas/01_hurt.md", idea("Fail", new_file("x.sh", "true")))
    toy.commit()
    flags = ("--ideas-per-node", "1", "--max-depth", "2", "--sweep-config-limit", "8")
    run_search(toy, *flags)
    data.unlink()
    paused = run_search(toy, "--until-done", code=1)
    assert "paused at depth 2" in paused.err
    assert "tests_failed" in paused.err
    data.touch()
    run_search(toy, "--until-done")
    (_, error) = (e["error"] for e in evaluations(toy).values())
    assert error["code"] == "tests_failed"


KILL = """\
if [ -n "$COORDINATOR" ]; then kill -9 "$COORDINATOR"; exit 1; fi
"""
DEADLY = """\
import os
from treewright.kernel.procs import proctree
os.environ["COORDINATOR"] = str(os.getpid())
"""
AND_RUN = "from treewright.cli.main import main\nmain()"
RESTARTED = """\
# The machine of a test cannot be restarted: each search is told another boot id. The system does
# not name its processes either, so that the owner before counts as dead and not as elsewhere.
proctree.boot_id, proctree.namespace = lambda: "boot {}", lambda: ""
"""
TWO = ("--ideas-per-node", "2", "--max-depth", "2", "--sweep-config-limit", "8")
ONE_BY_ONE = (
    *TWO,
    "--policy",
    "best-first",
    "--max-total-idea-evals",
    "2",
    "--dedupe-scope",
    "none",
)


def die_twice(toy: ToyRepository, *flags: str, script: str = "") -> dict[str, Any]:
    """Let a candidate end the search twice; return the evaluations after a third search, in which
    it cannot."""
    toy.write("sweep.sh", "[ ! -f x.sh ] || . ./x.sh\n" + (toy.path / "sweep.sh").read_text())
    toy.write("ideas/00_help.md", idea("Kill", new_file("x.sh", KILL.strip())))
    toy.commit()
    for number in range(2):
        dead = Search(toy, *flags, script=DEADLY + script.format(number) + AND_RUN)
        assert dead.end() == -signal.SIGKILL
    last = "from treewright.kernel.procs import proctree\n" + script.format("of the last") + AND_RUN
    done = Search(toy, *flags, script=last)
    assert done.end() == 0
    assert validate(toy.run_dir("run"), toy.path) == []
    return evaluations(toy)


def test_power_cuts_do_not_quarantine_a_candidate(toy: ToyRepository) -> None:
    found = die_twice(toy, *TWO, script=RESTARTED)
    assert [e["status"] for e in found.values()] == ["completed", "completed"]
    assert found["e000001"]["lost_alone"] == 0


@pytest.mark.parametrize("flags", [TWO, ONE_BY_ONE])
def test_a_candidate_that_kills_the_search_is_quarantined_until_reopened(
    toy: ToyRepository, treewright, flags: tuple[str, ...]
) -> None:
    found = die_twice(toy, *flags)
    assert found["e000001"]["error"]["code"] == "quarantined"
    assert "reopen e000001" in found["e000001"]["error"]["message"]
    assert found["e000002"]["status"] == "completed"
    more = ("--extend", "--max-total-idea-evals", "3") if flags is ONE_BY_ONE else ()
    for name in ("e000002", "e000009", "e000001", "e000001"):
        done = treewright("steer", "run", "reopen", name, "--repo", str(toy.path))
        assert done.returncode == 0, done.stderr
    run_search(toy, *more, "--until-done")
    again = evaluations(toy)
    idea_of = {name: e["idea_sha256"] for name, e in again.items()}
    tried = [n for n, sha256 in idea_of.items() if sha256 == idea_of["e000001"] and n != "e000001"]
    assert len(tried) == 1
    assert again[tried[0]]["parent_node_id"] == again["e000001"]["parent_node_id"]
    assert again[tried[0]]["status"] == "completed"
    steering = json.loads((toy.run_dir("run") / "manifest.json").read_text())["steering"]
    said = [r.get("refused", "") for r in steering if r["command"]["action"] == "reopen"]
    assert said[:3] == ["e000002 is not quarantined", "there is no evaluation e000009", ""]
    assert "e000001 was brought back before" in said[3]
    assert validate(toy.run_dir("run"), toy.path) == []


FIVE = (
    "--ideas-per-node", "5", "--max-depth", "1", "--max-total-idea-evals", "5",
    "--sweep-config-limit", "8", "--until-done",
)  # fmt: skip


@pytest.mark.parametrize(("policy", "workers"), [("beam", 1), ("beam", 2), ("mcts", 1)])
def test_a_sweep_that_stops_working_within_a_depth_pauses_the_run(
    toy: ToyRepository, tmp_path: Path, policy: str, workers: int
):
    """Two sweeps ended before the data was removed. Regression: the remaining evaluations failed,
    the best idea among them."""
    left = tmp_path / "left"
    left.write_text("xx")
    take = f"test -s '{left}' || exit 4\ncase $TREEWRIGHT_RESULTS_CSV in\n"
    take += f"*/preflight/*) ;; *) truncate -s -1 '{left}' ;; esac\n"
    toy.write("sweep.sh", take + (toy.path / "sweep.sh").read_text())
    toy.commit()
    flags = ("--policy", policy, "--max-parallel-evals", str(workers), *FIVE)
    paused = run_search(toy, *flags, code=1)
    assert "sweep_failed" in one_line(paused.err)
    left.write_text("x" * 99)
    run_search(toy, *flags)
    assert [e["status"] for e in evaluations(toy).values()] == ["completed"] * 5
    assert validate(toy.run_dir("run"), toy.path) == []


COUNT = """\
case $TREEWRIGHT_RESULTS_CSV in */preflight/*) kind=look ;; *) kind=sweep ;; esac
echo $kind >> '{log}'
number=$(grep -c $kind '{log}')
"""


@pytest.mark.parametrize("policy", ["beam", "mcts"])
def test_a_short_outage_does_not_end_the_run(toy: ToyRepository, tmp_path: Path, policy: str):
    """The third sweep fails, and so does the root check after it; every later command works."""
    blip = "case $kind$number in sweep3 | look2) exit 4 ;; esac\n"
    count = COUNT.format(log=tmp_path / "log")
    toy.write("sweep.sh", count + blip + (toy.path / "sweep.sh").read_text())
    toy.commit()
    run_search(toy, "--policy", policy, *FIVE)
    found = evaluations(toy)
    assert [e["status"] for e in found.values()] == ["completed"] * 5
    assert [e["pauses"] for e in found.values() if e["attempt"] > 1] == [1]
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_failing_candidate_fails_although_the_root_fails_now_and_then(
    toy: ToyRepository, tmp_path: Path
):
    """The candidate is alone, so no peer shows the cause, and every other root check fails."""
    unsure = "[ $kind$((number % 2)) != look0 ] || exit 4\n[ $kind != sweep ] || exit 3\n"
    count = COUNT.format(log=tmp_path / "log")
    toy.write("sweep.sh", count + unsure + (toy.path / "sweep.sh").read_text())
    toy.commit()
    run_search(toy, "--ideas-per-node", "1", "--max-depth", "1", "--until-done")
    (only,) = evaluations(toy).values()
    assert (only["status"], only["error"]["code"]) == ("failed", "sweep_failed")
    assert 1 <= only["pauses"] < MAX_PAUSES
    assert validate(toy.run_dir("run"), toy.path) == []


def test_one_root_check_serves_all_failed_evaluations(toy: ToyRepository, tmp_path: Path):
    """Regression: each failure started its own root check, so that many workers with a hanging
    sweep delayed the pause by days."""
    looks = tmp_path / "looks"
    toy.write("tests.sh", f"echo \"x$GPU\" >> '{looks}'\nexit 1\n")
    toy.write("treewright.toml", f"{CONFIG}\n[slots]\nGPU = ['7', '7', '7', '7']\n")
    toy.commit()
    problem = EvalError("tests_failed", "the test command exited with code 1")
    with pytest.raises(Paused, match="5 evaluations could not be made"):
        search(
            toy.path, "run", dataclasses.replace(TWO_IDEAS, ideas_per_node=5),
            make_executor=lambda work: Down(work, problem, capacity=4), policy=POLICY,
        )  # fmt: skip
    assert looks.read_text() == "x7\n" * 2, "for all of them, and before the run is paused"


SOURCE_X = "[ ! -f x.sh ] || . ./x.sh\n"
THREE = ("--ideas-per-node", "3", "--max-depth", "1", "--sweep-config-limit", "8", "--until-done")


def hostile(toy: ToyRepository, does: str) -> None:
    """The first idea's sweep does that and fails; `$RUN` and `$GIT` are the paths it can reach."""
    known = f"RUN='{toy.run_dir('run')}'\nGIT='{toy.path / '.git'}'\n"
    toy.write("sweep.sh", SOURCE_X + (toy.path / "sweep.sh").read_text())
    toy.write("ideas/00_help.md", idea("Hide", new_file("x.sh", f"{known}{does}\nexit 3")))
    toy.commit()


@pytest.mark.parametrize(
    "does",
    [
        'touch "$RUN/eval/preflight"',
        'mkfifo "$RUN/eval/preflight"',
        'ln -s "$GIT/../../elsewhere" "$RUN/eval/preflight"',
        'ln -s "$GIT/../../nowhere" "$RUN/eval/preflight"',
    ],
    ids=["file", "pipe", "link", "dangling"],
)
def test_a_candidate_that_occupies_the_path_of_the_root_check_fails(toy: ToyRepository, does: str):
    """Regression: the run stopped there in each invocation, or wrote its logs elsewhere."""
    elsewhere = toy.path.parent / "elsewhere"
    elsewhere.mkdir()
    hostile(toy, does)
    run_search(toy, *THREE)
    assert [e["status"] for e in evaluations(toy).values()] == ["failed", "completed", "completed"]
    assert list(elsewhere.iterdir()) == []
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_candidate_that_prevents_the_root_check_fails_in_the_end(toy: ToyRepository):
    """It leaves a lock among git's refs. Regression: no invocation got past this candidate."""
    hostile(toy, ': > "$GIT/refs/heads/treewright/run/cand/preflight.lock"')
    for _ in range(MAX_PAUSES - 1):
        paused = run_search(toy, *THREE, code=1)
        assert "paused at depth 1: 1 evaluation could not be made" in paused.err
    run_search(toy, *THREE)
    assert [e["status"] for e in evaluations(toy).values()] == ["failed", "completed", "completed"]


def test_a_root_check_with_untrusted_results_counts_as_failed(toy: ToyRepository, tmp_path: Path):
    """The first sweep fails, and the root check after it leaves code in the sweep's checkout."""
    blip = "case $kind$number in sweep1) exit 4 ;; look2) touch added.py ;; esac\n"
    count = COUNT.format(log=tmp_path / "log")
    toy.write("sweep.sh", count + blip + (toy.path / "sweep.sh").read_text())
    toy.write("treewright.toml", CONFIG.replace("[sweep]\n", '[sweep]\ncheckout = "root"\n'))
    toy.commit()
    run_search(toy, *THREE)
    found = evaluations(toy)
    assert [(e["status"], e["pauses"]) for e in found.values()] == [
        ("completed", 1), ("completed", 0), ("completed", 0),
    ]  # fmt: skip


def test_on_other_machines_passing_peers_show_that_the_first_failure_is_the_candidates(
    toy: ToyRepository, tmp_path: Path
):
    """The coordinator's machine lacks a tool of the sweep, and no evaluation had passed before."""
    lacking = "case $TREEWRIGHT_RESULTS_CSV in */preflight/*) exit 4 ;; esac\n"
    toy.write("sweep.sh", lacking + (toy.path / "sweep.sh").read_text())
    hostile(toy, "true")
    shape = dataclasses.replace(TWO_IDEAS, ideas_per_node=3)
    request = RunRequest(toy.path, "run", shape=shape, preflight=False, failure_rules=POLICY)
    with open_run(request, lambda _: None) as coordinator:
        coordinator.parts.options.is_local = False
        coordinator.finish()
    found = store.load(toy.run_dir("run")).evaluations
    assert [(e.status, e.pauses) for e in found.values()] == [
        ("failed", 0), ("completed", 0), ("completed", 0),
    ]  # fmt: skip


@pytest.mark.parametrize("look", [2, 3], ids=["first", "second"])
def test_a_kill_during_a_root_check_leaves_no_files(toy: ToyRepository, tmp_path: Path, look: int):
    dies = f'case $kind$number in look{look}) kill -9 "$COORDINATOR" ;; esac\n'
    blip = f"{dies}case $kind$number in sweep1 | look2) exit 4 ;; esac\n"
    count = COUNT.format(log=tmp_path / "log")
    toy.write("sweep.sh", count + blip + (toy.path / "sweep.sh").read_text())
    toy.commit()
    script = (
        "import os, sys; os.environ['COORDINATOR'] = str(os.getpid())\n"
        "from treewright.cli.main import main\nmain()"
    )
    assert Search(toy, *THREE, script=script).end() == -signal.SIGKILL
    run_search(toy, *THREE)
    assert [e["status"] for e in evaluations(toy).values()] == ["completed"] * 3
    assert validate(toy.run_dir("run"), toy.path) == []


class InterruptedThen(Shuffled):
    """An executor on which one evaluation fails by its sweep, and the user presses Ctrl-C when the
    next one has passed."""

    def __init__(self, work, cancel: threading.Event) -> None:
        super().__init__(work, seed=0, capacity=1, faults=0.0)
        self._cancel = cancel
        self._given = 0

    def next_done(self, timeout: float | None = None) -> Done | None:
        if not self._waiting:
            return None
        self._given += 1
        request = self._waiting.pop(0)
        if self._given == 1:
            return Done(request, EvalOutcome(error=EvalError("sweep_failed", "exited with code 4")))
        done = Done(request, self._work(request))
        self._cancel.set()
        return done


def test_ctrl_c_does_not_count_as_an_outage(toy: ToyRepository):
    """Regression: each Ctrl-C counted as a pause of the run, and after the third the candidate
    failed."""
    broken = "case $TREEWRIGHT_RESULTS_CSV in */preflight/*) exit 4 ;; esac\n"
    toy.write("sweep.sh", broken + (toy.path / "sweep.sh").read_text())
    toy.commit()
    shape = dataclasses.replace(TWO_IDEAS, ideas_per_node=MAX_PAUSES + 1)
    request = RunRequest(toy.path, "run", shape=shape, preflight=False, failure_rules=POLICY)
    for _ in range(MAX_PAUSES):
        with open_run(request, lambda _: None) as coordinator:
            cancel = coordinator.parts.cancel
            coordinator.make_executor = lambda work, cancel=cancel: InterruptedThen(work, cancel)
            with pytest.raises(KeyboardInterrupt):
                coordinator.finish()
    found = store.load(toy.run_dir("run")).evaluations
    states = [(e.status, e.pauses, e.attempt) for e in found.values()]
    assert states == [("pending", 0, MAX_PAUSES), *[("completed", 0, 1)] * MAX_PAUSES]


def test_a_machine_without_a_free_process_for_the_root_check_pauses_the_run(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
):
    """A candidate's code may have used up the processes."""
    started = process.run

    def run(command: str, *, log_path: Path, **given: Any) -> process.ProcessResult:
        if log_path.parent.name == layout.PREFLIGHT:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return started(command, log_path=log_path, **given)

    hostile(toy, "true")
    monkeypatch.setattr(process, "run", run)
    with pytest.raises(Paused, match="1 evaluation could not be made"):
        search(toy.path, "run", TWO_IDEAS)
