"""Goals that rest on an open lemma are searched again without it.

The retry is in the trace, uses the runner of the run, continues after a kill, and is not made for a
lemma that is proved later.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import program
from tests.here import Program
from tests.lean.projects import small_project
from tests.proving.runs import Prove, SessionFactory, resume
from tests.waiting import until
from treewright.lean.session.knowledge import Knowledge, Use
from treewright.lean.verify.replayer import Replayer
from treewright.proving.cell_settings import CellSettings
from treewright.proving.records import (
    Candidate,
    GoalOpened,
    GoalResult,
    GoalView,
    Iteration,
    TraceLine,
)
from treewright.proving.replay import replay_live, replay_offline
from treewright.proving.run import read_result
from treewright.proving.settings import Settings, SourceSettings
from treewright.proving.tactics.exclusion import WithoutNames, find_named, knowledge_without
from treewright.proving.tactics.factory import build_source
from treewright.proving.tactics.source import Suggestions
from treewright.proving.targets import parse
from treewright.proving.trace import read_trace, without_clock

pytestmark = pytest.mark.xdist_group("lean-session")

TAPE = """\
inductive Tape where
  | blank
  | cell (bit : Bool) (rest : Tape)

def Tape.flip : Tape → Tape
  | .blank => .blank
  | .cell b t => .cell (!b) t.flip

theorem flip_eq (t : Tape) : t.flip = t := by sorry

theorem flip_flip (t : Tape) : t.flip.flip = t := by sorry
"""
KNOWN = SourceSettings(known=True)
ONE = Settings(simulations=20, step_timeout=20.0, sources=KNOWN, refute=False)
CELLS = msgspec.structs.replace(
    ONE, mode="distributed", cells=CellSettings(agents=3, inflight=2), seed=3
)
ENGINES = pytest.mark.parametrize("settings", [ONE, CELLS], ids=["centralized", "distributed"])


def written(tmp_path: Path, text: str = TAPE) -> Path:
    path = tmp_path / "Tape.lean"
    path.write_text(text)
    return path


def is_retry(line: TraceLine) -> bool:
    return isinstance(line, GoalOpened | Iteration) and line.phase == "retry"


def lines_of(directory: Path) -> list[Any]:
    return [without_clock(line) for line in read_trace(directory / "trace.jsonl")]


@ENGINES
def test_a_true_theorem_is_proved_without_the_open_lemma_next_to_it(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path, settings: Settings
) -> None:
    result, directory = prove(parse(f"{written(tmp_path)}:flip_flip", None), settings)
    assert [(goal.status, goal.detail) for goal in result.goals] == [("proved", "")]
    assert "flip_eq" not in result.goals[0].proof
    assert result.certificate is not None
    lines = read_trace(directory / "trace.jsonl")
    (opened,) = [line for line in lines if is_retry(line) and isinstance(line, GoalOpened)]
    first, last = [line for line in lines if isinstance(line, GoalResult)]
    left = settings.simulations - first.iterations
    assert (opened.without, opened.simulations) == (("flip_eq",), left)
    turns = [line for line in lines if is_retry(line) and isinstance(line, Iteration)]
    assert [turn.iteration for turn in turns] == list(range(1, len(turns) + 1))
    assert all((turn.agent is None) == (settings.cells is None) for turn in turns)
    assert last.iterations == first.iterations + len(turns)
    assert last.elapsed >= max(first.elapsed, turns[-1].elapsed)
    assert (first.status, first.retry, last.retry) == ("partial", "", "solved")
    assert first.detail == "it closes its goal; it rests on `flip_eq`, which is not proved"
    assert "without `flip_eq`" in (directory / "report.md").read_text()
    source = build_source(settings)
    again = replay_offline(directory, source)
    assert (again.difference, again.iterations) == ("", first.iterations + len(turns))
    assert replay_live(directory, sessions, source, replayer).difference == ""


@ENGINES
def test_a_retry_cut_off_at_any_record_continues(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path, settings: Settings
) -> None:
    _, directory = prove(parse(f"{written(tmp_path)}:flip_flip", None), settings)
    expected = lines_of(directory)
    trace = directory / "trace.jsonl"
    whole = trace.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["type"] for line in whole]
    partial = kinds.index("verdict")
    assert json.loads(whole[partial + 1])["phase"] == "retry"
    for kept in range(partial + 1, len(whole)):
        trace.write_bytes(b"".join(whole[:kept]))
        assert resume(directory, sessions, replayer).proved == 1
        assert lines_of(directory) == expected, kept


def test_a_retry_killed_in_the_middle_gives_the_same_trace(
    tmp_path: Path, treewright_here: Program
) -> None:
    written(tmp_path)
    flags = [
        "prove",
        "--no-strategies",
        "Tape.lean:flip_flip",
        "--batch",
        "1",
        "--no-refute",
        "--run-id",
    ]
    treewright_here(*flags, "whole", cwd=tmp_path)
    runs = tmp_path / ".treewright/proof_runs"
    trace = runs / "killed" / "trace.jsonl"
    child = program.start(
        [*flags, "killed"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip

    def reached() -> bool:
        return child.poll() is not None or (
            trace.exists() and trace.read_bytes().count(b'"phase":"retry"') > 2
        )

    until(reached, seconds=240)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    done = treewright_here("prove", "--resume", "killed", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert lines_of(runs / "killed") == lines_of(runs / "whole")


def test_a_lemma_that_is_proved_later_makes_its_users_proved(prove: Prove, tmp_path: Path) -> None:
    """`third` is built on `flip_flip`, which waits itself; it is not searched again."""
    text = f"{TAPE}\ntheorem third (t : Tape) : t.flip.flip.flip = t.flip := by sorry\n"
    tactics = "exact flip_flip t.flip\nsimp [flip_eq]\n"
    sources = msgspec.structs.replace(KNOWN, tactics=tactics, noise=0.0)
    settings = msgspec.structs.replace(ONE, sources=sources)
    result, directory = prove(parse(str(written(tmp_path, text)), None), settings)
    assert [goal.status for goal in result.goals[1:]] == ["proved", "proved"]
    assert result.goals[2].proof == "exact flip_flip t.flip"
    lines = read_trace(directory / "trace.jsonl")
    assert [line.goal for line in lines if is_retry(line) and isinstance(line, GoalOpened)] == [1]
    reached = [(v.goal, v.status) for v in lines if isinstance(v, GoalResult)]
    assert reached[1:] == [(1, "partial"), (2, "partial"), (1, "proved"), (2, "proved")]
    assert replay_offline(directory, build_source(settings)).difference == ""


def test_two_sorries_of_one_declaration_both_get_along_without(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path
) -> None:
    text = TAPE.rpartition("theorem flip_flip")[0] + (
        "theorem both (t : Tape) : t.flip.flip = t ∧ t.flip.flip = t := by\n"
        "  constructor\n  · sorry\n  · sorry\n"
    )
    result, directory = prove(parse(f"{written(tmp_path, text)}:both", None), ONE)
    assert [goal.status for goal in result.goals] == ["proved", "proved"]
    source = build_source(ONE)
    assert replay_offline(directory, source).difference == ""
    assert replay_live(directory, sessions, source, replayer).difference == ""


@ENGINES
def test_an_open_lemma_that_an_attribute_brings_in_is_left_out_too(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path, settings: Settings
) -> None:
    """`simp` closes the goal by it, and the script does not name it."""
    text = TAPE.replace("theorem flip_eq", "@[simp] theorem flip_eq")
    settings = msgspec.structs.replace(
        settings, sources=msgspec.structs.replace(KNOWN, tactics="simp\n", noise=0.0)
    )
    result, directory = prove(parse(f"{written(tmp_path, text)}:flip_flip", None), settings)
    lines = read_trace(directory / "trace.jsonl")
    first, last = [line for line in lines if isinstance(line, GoalResult)]
    assert (first.status, first.proof) == ("partial", "simp")
    (opened,) = [line for line in lines if is_retry(line) and isinstance(line, GoalOpened)]
    assert opened.without == ("flip_eq",)
    assert (last.status, last.retry) == ("proved", "solved")
    assert result.certificate is not None
    source = build_source(settings)
    assert replay_offline(directory, source).difference == ""
    assert replay_live(directory, sessions, source, replayer).difference == ""


def test_without_a_proof_the_partial_script_stays_and_names_the_retry(
    prove: Prove, tmp_path: Path
) -> None:
    text = (
        "opaque f : Nat → Nat\n"
        "theorem open_one (n : Nat) : f n = 0 := by sorry\n"
        "theorem behind (n : Nat) : f n = 0 := by sorry\n"
    )
    settings = msgspec.structs.replace(ONE, simulations=4)
    path = written(tmp_path, text)
    result, directory = prove(parse(f"{path}:behind", None), settings)
    (goal,) = result.goals
    assert (goal.status, "open_one" in goal.proof) == ("partial", True)
    assert goal.detail.startswith(
        "it closes its goal; it rests on `open_one`, which is not proved; "
        "without that no proof was found: "
    )
    assert replay_offline(directory, build_source(settings)).difference == ""
    assert read_result(directory) == result


def test_a_retry_has_the_rest_of_the_budget(prove: Prove, tmp_path: Path) -> None:
    """One simulation is enough for the script that rests on the lemma: none is left."""
    sources = msgspec.structs.replace(KNOWN, tactics="simp [flip_eq]\n", noise=0.0)
    settings = msgspec.structs.replace(ONE, simulations=1, sources=sources)
    result, directory = prove(parse(f"{written(tmp_path)}:flip_flip", None), settings)
    (goal,) = result.goals
    assert (goal.status, goal.iterations) == ("partial", 1)
    assert "without that no proof was found: the limit of simulations was reached" in goal.detail
    lines = read_trace(directory / "trace.jsonl")
    assert not any(is_retry(line) and isinstance(line, Iteration) for line in lines)
    assert replay_offline(directory, build_source(settings)).difference == ""


def test_an_open_lemma_of_an_imported_module_is_left_out_too(
    tmp_path: Path, treewright_here: Program
) -> None:
    root = small_project(
        tmp_path / "project",
        Base=TAPE.rpartition("theorem flip_flip")[0],
        Top="import Foo.Base\ntheorem flip_flip (t : Tape) : t.flip.flip = t := by\n  sorry\n",
    )
    done = treewright_here(
        "prove", "--no-strategies", "Foo/Top.lean", "--no-refute", "--json", cwd=root
    )
    (goal,) = json.loads(done.stdout)["goals"]
    assert goal["status"] == "proved", (goal, done.stderr)
    assert "rests on `flip_eq`, which is not proved" in done.stderr
    assert "again without flip_eq" in done.stderr


def test_a_verdict_that_claims_another_end_is_noticed(prove: Prove, tmp_path: Path) -> None:
    _, directory = prove(parse(f"{written(tmp_path)}:flip_flip", None), ONE)
    trace = directory / "trace.jsonl"
    text = trace.read_text()
    for wrong in ("time", "exhausted", ""):
        trace.write_text(text.replace('"retry":"solved"', f'"retry":"{wrong}"'))
        assert replay_offline(directory, build_source(ONE)).difference, wrong


def test_a_retry_for_another_goal_is_noticed(prove: Prove, tmp_path: Path) -> None:
    """Its script would count as a proof of the goal; no other offline check finds that it is
    not."""
    _, directory = prove(parse(f"{written(tmp_path)}:flip_flip", None), ONE)
    trace = directory / "trace.jsonl"
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    (opened,) = [x for x in lines if x["type"] == "goal" and x["phase"] == "retry"]
    (view,) = opened["root"]["goals"]
    edits = [(opened, "statement", "True"), (view, "target", "True"), (opened["root"], "key", "x")]
    for place, name, value in [*edits, (opened, "without", [])]:
        kept, place[name] = place[name], value
        trace.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        said = replay_offline(directory, build_source(ONE)).difference
        assert said.startswith("goal 0, its retry: "), name
        place[name] = kept


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("simp [merge_comm]", True),
        ("exact Cart.merge_comm a b", True),
        ("exact a.merge_comm b", True),
        ("exact List.merge_comm a b", False),
        ("simp [merge_comm']", False),
        ("simp [merge_commutes]", False),
    ],
)
def test_names_in_a_script(script: str, named: bool) -> None:
    assert bool(find_named(script, ["Cart.merge_comm"])) == named
    assert not find_named("exact merge_comm", ["Cart.merge_comm"], local=["merge_comm"])


def test_sets_of_lemmas_lose_a_name_and_not_themselves() -> None:
    known = Knowledge(
        uses=(Use("good", "exact"), Use("bad", "rw")), related=("bad", "near"), definitions=("d",)
    )
    less = knowledge_without(lambda node: known, ["bad"])(0)
    assert [use.name for use in less.uses] == ["good"]
    assert (less.related, less.definitions) == (("near",), ("d",))


def test_suggestions_that_mention_the_names_are_dropped() -> None:
    class Source:
        name = "some"

        def suggest(self, goals: object, round_number: int) -> Suggestions:
            return Suggestions((Candidate("exact bad"), Candidate("rfl")), complete=False)

    answer = WithoutNames(Source(), ["bad"]).suggest([GoalView("x = x")], 0)
    assert ([c.tactic for c in answer.candidates], answer.complete) == (["rfl"], False)
