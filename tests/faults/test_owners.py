"""Concurrent, stalled and interrupted coordinators."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import program
from tests.decisions import decisions, repeated_evaluations
from tests.faults.running import (
    RUN,
    SHAPE,
    Gate,
    Search,
    add_gate,
    arguments,
    copy_of,
    fingerprint,
    finish,
    nothing_runs,
    one_line,
    search,
)
from tests.toy import ToyRepository
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("owners")


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> ToyRepository:
    toy = ToyRepository.create(tmp_path_factory.mktemp("template") / "repo")
    add_gate(toy)
    return toy


@pytest.fixture(scope="module")
def expected(template: ToyRepository, tmp_path_factory) -> dict:
    """Return the decisions of an uninterrupted run."""
    undisturbed = copy_of(template, tmp_path_factory.mktemp("undisturbed") / "repo")
    finish(undisturbed, *SHAPE)
    return decisions(undisturbed.run_dir(RUN))


@pytest.fixture
def gated(template: ToyRepository, tmp_path: Path) -> ToyRepository:
    return copy_of(template, tmp_path / "target repo")


def test_the_second_of_two_coordinators_is_refused(
    gated: ToyRepository, tmp_path: Path, expected
) -> None:
    gate = Gate(tmp_path / "gate")
    first = Search(gated, *SHAPE, "--until-done", env=gate.environment)
    gate.wait()
    before = fingerprint(gated)
    second = search(gated, *SHAPE, code=3)
    said = one_line(second.err)
    assert said.startswith("treewright: Run lock is active (not stale): pid ")
    assert f"pid {first.child.pid} " in said
    assert "--force" in said
    assert second.out == ""
    assert fingerprint(gated) == before
    gate.open()
    assert first.end() == 0
    assert decisions(gated.run_dir(RUN)) == expected


def test_of_two_coordinators_started_at_the_same_moment_one_works(
    gated: ToyRepository, expected
) -> None:
    both = [Search(gated, *SHAPE, "--until-done") for _ in range(2)]
    codes = sorted(one.end() for one in both)
    assert codes in ([0, 0], [0, 3]), [one.err for one in both]
    assert decisions(gated.run_dir(RUN)) == expected
    assert repeated_evaluations(gated.run_dir(RUN)) == []


def test_a_stalled_owner_that_wakes_after_a_takeover_writes_nothing(
    gated: ToyRepository, tmp_path: Path, expected
) -> None:
    gate = Gate(tmp_path / "gate")
    stalled = Search(gated, *SHAPE, "--until-done", env=gate.environment)
    gate.wait()
    stalled.signal(signal.SIGSTOP)
    finish(gated, "--force")
    assert decisions(gated.run_dir(RUN)) == expected
    before = fingerprint(gated)
    stalled.signal(signal.SIGCONT)
    assert stalled.end() == 3
    assert "lost the run to another one" in one_line(stalled.err)
    assert stalled.out == ""
    assert fingerprint(gated) == before
    assert nothing_runs(gated)
    takeovers = json.loads((gated.run_dir(RUN) / "manifest.json").read_text())["takeovers"]
    assert [takeover["how"] for takeover in takeovers] == ["forced"]


def test_a_stalled_owner_that_wakes_does_not_disturb_its_successor(
    gated: ToyRepository, tmp_path: Path, expected
) -> None:
    first_gate, second_gate = Gate(tmp_path / "gate"), Gate(tmp_path / "gate 2")
    stalled = Search(gated, *SHAPE, "--until-done", env=first_gate.environment)
    first_gate.wait()
    stalled.signal(signal.SIGSTOP)
    successor = Search(gated, "--force", "--until-done", env=second_gate.environment)
    second_gate.wait()
    stalled.signal(signal.SIGCONT)
    assert stalled.end() == 3
    second_gate.open()
    assert successor.end() == 0, successor.err
    assert decisions(gated.run_dir(RUN)) == expected
    assert repeated_evaluations(gated.run_dir(RUN)) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_stops_a_search_in_order(
    gated: ToyRepository, tmp_path: Path, expected, number: signal.Signals
) -> None:
    gate = Gate(tmp_path / "gate")
    first = Search(gated, *SHAPE, "--until-done", env=gate.environment)
    gate.wait()
    first.signal(number)
    assert first.end() == 130
    assert one_line(first.err).endswith("run the same command again to continue")
    assert first.out == ""
    assert nothing_runs(gated)
    finish(gated)
    assert decisions(gated.run_dir(RUN)) == expected
    assert repeated_evaluations(gated.run_dir(RUN)) == []


def test_repeated_hangup_signals_do_not_fail_the_candidate(
    gated: ToyRepository, tmp_path: Path, expected
) -> None:
    """A shell and the system may both send SIGHUP; only a second SIGINT ends the search at once."""
    for name in ("first", "second"):
        gate = Gate(tmp_path / name)
        closed = Search(gated, *SHAPE, env=gate.environment)
        gate.wait()
        closed.signal(signal.SIGHUP)
        closed.signal(signal.SIGHUP)
        assert closed.end() == 130, closed.err
    finish(gated)
    assert decisions(gated.run_dir(RUN)) == expected


def test_a_search_started_with_nohup_ignores_sighup(
    gated: ToyRepository, tmp_path: Path, expected
) -> None:
    gate = Gate(tmp_path / "gate")
    env = gate.environment
    script = f"trap '' HUP; exec {sys.executable} -m treewright \"$@\""
    command = ["sh", "-c", script, "sh", *arguments(gated, *SHAPE, "--until-done")]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as left:
        gate.wait()
        left.send_signal(signal.SIGHUP)
        gate.open()
        assert left.communicate(timeout=200)[1].count(b"stopping") == 0
    assert left.returncode == 0
    assert decisions(gated.run_dir(RUN)) == expected


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_a_search_continues_after_the_reader_of_its_stderr_ends(
    gated: ToyRepository, tmp_path: Path, expected, kind: str
) -> None:
    """The reader is a killed `| tee` or a closed terminal; no process has to read stderr."""
    gate = Gate(tmp_path / "gate")
    ours, theirs = os.openpty() if kind == "terminal" else os.pipe()
    flags = arguments(gated, *SHAPE, "--until-done")
    searching = program.start(
        flags, env=gate.environment, stdout=subprocess.PIPE, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    os.set_blocking(ours, False)

    def watched() -> bool:
        with contextlib.suppress(BlockingIOError):
            os.read(ours, 1 << 16)
        return (gate.path / "swept").exists()

    until(watched, what="a sweep at the gate")
    os.close(ours)
    gate.open()
    out, _ = searching.communicate(timeout=200)
    assert searching.returncode == 0
    assert json.loads(out)["stop_reason"] == "max_depth_reached"
    assert decisions(gated.run_dir(RUN)) == expected


def test_two_signals_stop_at_once(gated: ToyRepository, tmp_path: Path, expected) -> None:
    gated.write("sweep.sh", "trap '' TERM\n" + (gated.path / "sweep.sh").read_text())
    gated.commit("a sweep that does not listen")
    gate = Gate(tmp_path / "gate")
    first = Search(gated, *SHAPE, "--until-done", env=gate.environment)
    gate.wait()
    first.signal(signal.SIGINT)
    until(lambda: first.child.stderr and "once more" in first.child.stderr.readline())
    first.signal(signal.SIGINT)
    assert first.end() == 130
    assert nothing_runs(gated)
    finish(gated)
    assert repeated_evaluations(gated.run_dir(RUN)) == []


def test_ctrl_c_that_also_reaches_git_does_not_fail_the_candidate(
    gated: ToyRepository, tmp_path: Path, expected
) -> None:
    """A terminal sends the signal to the whole process group; git must not end by it."""
    shims = tmp_path / "bin"
    shims.mkdir()
    real = os.environ["PATH"]
    script = f"""#!/bin/sh
PATH='{real}'
for word; do
  if [ "$word" = apply ]; then
    : > '{shims}/applying'
    until test -e '{shims}/go'; do sleep 0.05; done
  fi
done
exec git "$@"
"""
    (shims / "git").write_text(script)
    (shims / "git").chmod(0o755)
    environment = {**os.environ, "PATH": f"{shims}:{real}"}
    first = Search(gated, *SHAPE, "--until-done", env=environment, start_new_session=True)
    until(lambda: (shims / "applying").exists(), what="git apply runs")
    os.killpg(first.child.pid, signal.SIGINT)
    until(lambda: first.child.stderr and "once more" in first.child.stderr.readline())
    (shims / "go").touch()
    assert first.end() == 130
    finish(gated)
    assert decisions(gated.run_dir(RUN)) == expected


def test_ctrl_c_during_the_baseline_ends_every_process(
    gated: ToyRepository, tmp_path: Path
) -> None:
    gated.git("rm", "-q", "baseline.csv")
    gated.write(".gitignore", "baseline.csv\n")
    gated.commit("no baseline")
    gate = Gate(tmp_path / "gate")
    first = Search(gated, *SHAPE, "--make-baseline", env=gate.environment)
    gate.wait()
    first.signal(signal.SIGINT)
    assert first.end() == 130
    assert nothing_runs(gated)
    assert finish(gated, *SHAPE, "--make-baseline")["stop_reason"] == "max_depth_reached"


def test_kill_9_leaves_no_process(gated: ToyRepository, tmp_path: Path, expected) -> None:
    gate = Gate(tmp_path / "gate")
    first = Search(gated, *SHAPE, "--until-done", env=gate.environment)
    gate.wait()
    assert not nothing_runs(gated)
    first.signal(signal.SIGKILL)
    assert first.end() == -9
    until(lambda: nothing_runs(gated), what="the watchdog ends the sweep")
    finish(gated)
    assert decisions(gated.run_dir(RUN)) == expected
