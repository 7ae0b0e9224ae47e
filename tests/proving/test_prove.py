"""`prove` on real Lean: proved goals, unproved goals with a reason, kill and resume."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tests import program
from tests.here import Program
from tests.proving.runs import Prove, SessionFactory
from tests.waiting import until
from treewright.kernel.errors import TreewrightError
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.proving import targets
from treewright.proving.cell_settings import CellSettings
from treewright.proving.phases import cancel_on_stop
from treewright.proving.records import Iteration
from treewright.proving.replay import replay_live, replay_offline
from treewright.proving.settings import FileTarget, Settings, SourceSettings
from treewright.proving.tactics.factory import build_source
from treewright.proving.targets import parse
from treewright.proving.trace import read_trace, without_clock

pytestmark = pytest.mark.xdist_group("lean-session")

NEEDS_STEPS = "∀ p q : Prop, (∀ r : Prop, (p → q → r) → r) → p ∧ q"
FILE = """\
example : 1 = 1 := by sorry

axiom magic : ∀ n : Nat, n + 1 = 1 + n + 0 * n

theorem first (xs : List Nat) : (xs ++ []).length = xs.length := by
  sorry

theorem second (a b c : Nat) (h : a = b) : a + c = b + c ∧ True := by
  constructor
  · sorry
  · sorry
"""


@pytest.mark.parametrize("mode", ["centralized", "distributed"])
def test_a_statement_is_proved_and_comes_out_the_same_again(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, mode: str
) -> None:
    settings = Settings(
        mode=mode,  # pyright: ignore[reportArgumentType]
        simulations=60,
        step_timeout=20.0,
        seed=3,
        cells=CellSettings(agents=3, inflight=2) if mode == "distributed" else None,
    )
    result, directory = prove(NEEDS_STEPS, settings)
    assert result.proved == result.total == 1, result.goals
    assert result.goals[0].proof
    assert set(result.goals[0].axioms) <= {"propext", "Classical.choice", "Quot.sound"}
    source = build_source(settings)
    offline = replay_offline(directory, source)
    assert (offline.difference, offline.goals) == ("", 1)
    assert offline.iterations == sum(isinstance(x, Iteration) for x in lines(directory))
    live = replay_live(directory, sessions, source, replayer)
    assert (live.difference, live.iterations) == ("", offline.iterations)


def lines(directory: Path) -> list[object]:
    return list(read_trace(directory / "trace.jsonl"))


def test_eight_damaged_agents_five_times_the_same_trace(prove: Prove) -> None:
    damage = CellSettings(
        agents=8,
        inflight=3,
        algotypes=("ucb", "puct", "depth_first", "random"),
        block_fraction=0.4,
        block_duration=3,
        delay_prob=0.3,
        delay_duration=2,
    )
    settings = Settings(
        mode="distributed", simulations=10, batch=2, step_timeout=20.0, refute=False, cells=damage
    )
    traces = []
    for _ in range(5):
        _, directory = prove(NEEDS_STEPS, settings)
        traces.append([without_clock(line) for line in read_trace(directory / "trace.jsonl")])
    assert any(line["interventions"] for line in traces[0] if line["type"] == "iteration")
    assert all(trace == traces[0] for trace in traces)


def test_a_changed_trace_is_found_offline(prove: Prove) -> None:
    result, directory = prove("∀ p q : Prop, p ∧ q → q ∧ p")
    assert result.proved == 1
    trace = directory / "trace.jsonl"
    source = build_source(Settings())
    text = trace.read_text()
    for old, new in (
        ('"outcome":"closed"', '"outcome":"error"'),
        ('"status":"proved"', '"status":"unproved"'),
        ('"iteration":1,', '"iteration":2,'),
    ):
        assert old in text
        trace.write_text(text.replace(old, new))
        assert replay_offline(directory, source).difference, old


@pytest.mark.parametrize(
    ("statement", "status", "detail"),
    [
        ("∀ n : Nat, n = n + 1", "false", "negation"),
        ("(2 : Nat) + 2 = 5", "false", "negation"),
        ("∀ n : Nat, n = nonsense", "ill_typed", "nonsense"),
        ("Nat", "ill_typed", "Prop"),
        ("∀ p : Prop, p ∨ (p → False) ∨ nope p", "ill_typed", "nope"),
        ("∀ a b c : Nat, a ^ 3 + b ^ 3 = c ^ 3 → a * b = 0", "unproved", ""),
    ],
)
def test_an_unproved_goal_says_why(prove: Prove, statement: str, status: str, detail: str) -> None:
    settings = Settings(simulations=12, step_timeout=20.0)
    result, _ = prove(statement, settings)
    assert result.proved == 0
    assert result.goals[0].status == status, result.goals
    assert detail in result.goals[0].detail


def test_every_sorry_of_a_file(prove: Prove, tmp_path: Path) -> None:
    path = tmp_path / "Basics.lean"
    path.write_text(FILE)
    result, directory = prove(parse(str(path), None))
    assert [(g.name, g.status) for g in result.goals] == [
        ("first:6", "proved"),
        ("second:10", "proved"),
        ("second:11", "proved"),
    ]
    assert path.read_text() == FILE
    assert result.file is not None
    proved = Path(result.file).read_text()
    assert proved.count("sorry") == 1  # the example's
    assert proved.splitlines()[:5] == FILE.splitlines()[:5]
    verdicts = [json.loads(x) for x in (directory / "trace.jsonl").read_text().splitlines()]
    second = [v["status"] for v in verdicts if v["type"] == "verdict" and v["goal"] == 1]
    assert second == ["partial", "proved"]


def test_a_file_is_elaborated_once_for_all_its_sorries(
    sessions: SessionFactory, tmp_path: Path
) -> None:
    path = tmp_path / "Many.lean"
    path.write_text("".join(f"theorem t{i} : {i} = {i} := by\n  sorry\n" for i in range(4)))
    target = parse(str(path), None)
    session = sessions()
    checked: list[str] = []
    real = session.check

    class Counted:
        def __getattr__(self, name: str) -> object:
            return getattr(session, name)

        def check(self, source: str, **kwargs: Any) -> object:
            checked.append(source)
            return real(source, **kwargs)

    counted = cast("HostSession", Counted())
    specs = targets.read_file_goals(cast("FileTarget", target), counted)
    opened = [spec.opening(counted) for spec in specs]
    assert [state.goals[0].target for state in opened if isinstance(state, ProofState)] == [
        f"{i} = {i}" for i in range(4)
    ]
    assert len(checked) == 1
    assert isinstance(specs[2].opening(counted), ProofState), "a second time it is made again"
    assert len(checked) == 2
    other = sessions()
    assert isinstance(specs[0].opening(other), ProofState), "so it is in another session"


def test_a_goal_of_a_file_is_not_refuted_out_of_its_context(prove: Prove, tmp_path: Path) -> None:
    """In the file `1 + 1 = 0` is true; outside of it the text would be false."""
    path = tmp_path / "Two.lean"
    path.write_text(
        "inductive Two | zero | one\n"
        "instance : OfNat Two 0 := ⟨.zero⟩\ninstance : OfNat Two 1 := ⟨.one⟩\n"
        "instance : HAdd Two Two Two := ⟨fun _ _ => .zero⟩\n"
        "theorem wraps : (1 : Two) + 1 = 0 := by\n  sorry\n"
    )
    result, _ = prove(parse(str(path), None), Settings(simulations=3, batch=1, step_timeout=20.0))
    assert result.goals[0].status in ("proved", "unproved")


def test_a_script_that_breaks_the_file_is_not_put_into_it(prove: Prove, tmp_path: Path) -> None:
    """The first `sorry` closes, the second stays open; the copy still elaborates."""
    path = tmp_path / "Half.lean"
    path.write_text(
        "theorem half (p q : Prop) (h : p) : p ∧ (q → p → q ∧ False) := by\n"
        "  constructor\n  · sorry\n  · sorry\n"
    )
    result, _ = prove(parse(str(path), None), Settings(simulations=4, step_timeout=20.0))
    assert [goal.status for goal in result.goals] == ["partial", "false"]
    assert result.file is not None
    assert Path(result.file).read_text().count("sorry") == 1


def test_an_example_is_left_alone_and_that_is_said(
    tmp_path: Path, treewright_here: Program
) -> None:
    path = tmp_path / "Ex.lean"
    path.write_text("theorem fine : 1 + 1 = 2 := by\n  sorry\nexample : 2 + 2 = 4 := by\n  sorry\n")
    done = treewright_here("prove", str(path), "--run-id", "r", "--step-timeout", "20")
    assert done.returncode == 1, done.stderr
    assert "an example has no name under which a proof can be checked" in done.stderr
    assert "1 of 1 proved\nleft alone: the example of line 4" in done.stdout
    # The same of a project that has such a file.
    (tmp_path / "lakefile.toml").write_text('name = "ex"\n[[lean_lib]]\nname = "Ex"\n')
    done = treewright_here("prove", ".", "--step-timeout", "20", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "1 of 1 proved, in 1 files\nleft alone: Ex.lean: the example of line 4" in done.stdout


def test_a_project_passes_over_the_word_in_a_comment_and_not_over_an_example(
    tmp_path: Path, treewright_here: Program
) -> None:
    (tmp_path / "lakefile.toml").write_text('name = "ex"\n[[lean_lib]]\nname = "Ex"\n')
    path = tmp_path / "Ex.lean"
    path.write_text("theorem done : 1 = 1 := rfl  -- no sorry is left\n")
    done = treewright_here("prove", ".", "--no-library", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "nothing to prove" not in done.stderr
    path.write_text("example : 1 = 1 := by sorry\n")
    done = treewright_here("prove", ".", "--no-library", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "no sorry that can be proved; the sorries of examples are left out" in done.stderr


def test_a_proof_refused_for_an_axiom_names_the_option(
    tmp_path: Path, treewright_here: Program
) -> None:
    path = tmp_path / "Axiom.lean"
    path.write_text("axiom P : Prop\naxiom magic : P\ntheorem claim : P := by\n  sorry\n")
    tactics = tmp_path / "tactics.txt"
    tactics.write_text("exact magic\n")
    flags = ("--tactics", str(tactics), "--no-library", "--simulations", "4")
    refused = treewright_here("prove", str(path), *flags, cwd=tmp_path)
    assert refused.returncode == 1, refused.stderr
    assert "claim:4: rejected" in refused.stdout
    assert "--axioms names the axioms that a proof may rest on" in refused.stderr
    allowed = treewright_here("prove", str(path), *flags, "--axioms", "magic,P", cwd=tmp_path)
    assert allowed.returncode == 0, allowed.stderr
    assert "--axioms" not in allowed.stderr


def test_declarations_that_an_error_concerns_are_named(
    tmp_path: Path, treewright_here: Program
) -> None:
    path = tmp_path / "Broken.lean"
    path.write_text(
        "def twice (n : Nat) : Nat := n + true\n"
        "theorem of_twice (n : Nat) : twice n = n + n := by\n  sorry\n"
        "theorem fine : 1 + 1 = 2 := by\n  sorry\n"
    )
    done = treewright_here("prove", str(path), "--run-id", "r", "--step-timeout", "20")
    assert done.returncode == 1, done.stderr
    assert "Broken.lean:1:" in done.stderr
    assert "; left alone because of it: of_twice" in done.stderr
    assert "1 of 1 proved\nleft alone: of_twice" in done.stdout
    result = json.loads((tmp_path / ".treewright/proof_runs/r/result.json").read_text())
    assert result["left_alone"] == ["of_twice"]


def test_a_partial_goal_names_the_open_lemma(prove: Prove, tmp_path: Path) -> None:
    path = tmp_path / "Rests.lean"
    says = "(f : Nat → Nat) (h : ∀ n, f (f n) = n + 7) : f 0 = 3"
    names = ("hard", "again", "third")
    path.write_text("".join(f"theorem {name} {says} := by\n  sorry\n" for name in names))
    known = SourceSettings(known=True)
    settings = Settings(simulations=2, step_timeout=20.0, refute=False, sources=known)
    result, _ = prove(parse(str(path), None), settings)
    hard, again, third = result.goals
    assert (hard.status, again.status, third.status) == ("unproved", "partial", "partial")
    assert again.detail == (
        "it closes its goal; it rests on `hard`, which is not proved; "
        "without that no proof was found: the limit of simulations was reached"
    )
    assert third.detail.startswith("it closes its goal; it rests on `")


def test_an_axiom_outside_the_list_is_no_proof(prove: Prove, tmp_path: Path) -> None:
    path = tmp_path / "Magic.lean"
    path.write_text("axiom P : Prop\naxiom magic : P\ntheorem claim : P := by\n  sorry\n")
    settings = with_tactics(Settings(simulations=20, step_timeout=20.0), "exact magic\n")
    result, _ = prove(parse(f"{path}:claim", None), settings)
    assert result.goals[0].status == "rejected"
    assert "magic" in result.goals[0].detail


def with_tactics(settings: Settings, tactics: str) -> Settings:
    sources = msgspec.structs.replace(settings.sources, tactics=tactics)
    return msgspec.structs.replace(settings, sources=sources)


def test_a_tactic_that_never_ends_is_a_failed_attempt(prove: Prove) -> None:
    # Only the root has something to introduce: elsewhere it fails at once.
    slow = "(intro p; repeat (first | (have : 1 = 1 := rfl; clear this)))"
    settings = with_tactics(Settings(simulations=30, step_timeout=5.0), f"{slow}\nintro p q h\n")
    result, directory = prove("∀ p q : Prop, p ∧ q → q ∧ p", settings)
    assert result.proved == 1
    outcomes = {
        attempt.outcome
        for line in lines(directory)
        if isinstance(line, Iteration) and line.node == 0
        for attempt in line.attempts
        if attempt.tactic == slow
    }
    assert outcomes
    assert outcomes <= {"timeout", "exhausted", "lost"}


@pytest.mark.parametrize("mode", ["centralized", "distributed"])
def test_killed_at_any_moment_the_trace_is_the_same(
    tmp_path: Path, treewright_here: Program, mode: str
) -> None:
    """kill -9 after some lines of the trace, several times over, each time continued."""
    whole = tmp_path / "whole"
    killed = tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    flags = [
        "prove", "--statement", NEEDS_STEPS, "--simulations", "12", "--batch", "1",
        "--no-strategies",
        "--step-timeout", "60", "--no-refute", "--run-id", "r", "--mcts-mode", mode,
    ]  # fmt: skip
    if mode == "distributed":
        flags += [
            "--agents",
            "8",
            "--inflight",
            "3",
            "--delay-prob",
            "0.2",
            "--block-fraction",
            "0.3",
        ]
    treewright_here(*flags, cwd=whole)
    expected = trace_of(whole)
    assert sum(line["type"] == "iteration" for line in expected) > 3

    trace = killed / ".treewright/proof_runs/r/trace.jsonl"
    for stop_at in (1, 3):
        arguments = ["prove", "--resume", "r"] if trace.exists() else flags
        child = program.start(
            arguments, cwd=killed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        until(
            lambda n=stop_at, c=child: (
                c.poll() is not None or (trace.exists() and trace.read_bytes().count(b"\n") > n)
            ),
            seconds=240,
        )
        with contextlib.suppress(ProcessLookupError):  # it may have come to its end
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    treewright_here("prove", "--resume", "r", cwd=killed)
    assert trace_of(killed) == expected


def test_in_place_changes_the_file_once_everything_was_searched(
    tmp_path: Path, treewright_here: Program
) -> None:
    path = tmp_path / "In.lean"
    path.write_text("theorem t (a : Nat) : a + 0 = a := by\n  sorry\n")
    path.chmod(0o640)
    link = tmp_path / "Link.lean"
    link.symlink_to("In.lean")
    done = treewright_here("prove", "Link.lean", "--in-place")
    assert done.returncode == 0, done.stderr
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert "sorry" not in path.read_text()
    assert path.read_text().startswith("theorem t (a : Nat) : a + 0 = a := by\n  ")


PARTLY = """\
opaque f : Nat → Nat
theorem open_one (n : Nat) : f n = 0 := by sorry
theorem behind (n : Nat) : f n = 0 := by
  sorry
theorem fine (a : Nat) : a + 0 = a := by
  sorry
"""


@pytest.mark.parametrize(("names", "proved"), [("", True), (":behind", False)])
def test_in_place_writes_proofs_and_names_partial_goals(
    tmp_path: Path, treewright_here: Program, names: str, proved: bool
) -> None:
    path = tmp_path / "Partly.lean"
    path.write_text(PARTLY)
    done = treewright_here(
        "prove", f"Partly.lean{names}", "--in-place", "--no-refute", "--simulations", "3",
        "--no-strategies",
        "--run-id", "r",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "partial: it closes its goal; it rests on `open_one`" in done.stdout
    head = PARTLY.partition("theorem fine")[0]
    assert path.read_text().startswith(head)
    assert ("sorry" not in path.read_text()[len(head) :]) == proved
    assert ("nothing was written into the file itself" in done.stdout) == (not proved)
    copy = tmp_path / ".treewright/proof_runs/r/proved/Partly.lean"
    assert "open_one" in copy.read_text().partition("theorem behind")[2]
    again = treewright_here("replay", "r")
    assert again.returncode == 0, again.stdout


def trace_of(directory: Path) -> list[dict[str, object]]:
    path = directory / ".treewright/proof_runs/r/trace.jsonl"
    return [without_clock(line) for line in read_trace(path)]  # pyright: ignore[reportReturnType]


def test_an_error_elsewhere_in_the_file_is_no_hindrance(prove: Prove, tmp_path: Path) -> None:
    path = tmp_path / "Mixed.lean"
    path.write_text(
        "theorem broken : 1 = 2 := by decide\n"
        "def bad : Nat := nowhere\n"
        "theorem fine (a b : Nat) : a + b = b + a := by\n  sorry\n"
        "theorem concerned : bad = bad := by\n  sorry\n"
    )
    settings = with_tactics(Settings(simulations=10, step_timeout=20.0), "omega\nrfl\n")
    result, _ = prove(parse(str(path), None), settings)
    assert [(goal.name, goal.status) for goal in result.goals] == [("fine:4", "proved")]
    with pytest.raises(TreewrightError, match=r"concerns `concerned`.*nowhere"):
        prove(parse(f"{path}:concerned", None), settings)


def test_reading_a_file_ends_when_the_user_asks_to_stop(lean: HostSession) -> None:
    asked = threading.Event()
    line = "theorem t{i} (a b c : Nat) (h : a + b < c) : a * 2 + b * 2 < c * 2 := by omega\n"
    endless = "".join(line.replace("{i}", str(i)) for i in range(20000)) + "theorem t := by sorry\n"
    target = FileTarget("Endless.lean", endless, None)
    threading.Timer(0.2, asked.set).start()
    with (
        cancel_on_stop(asked.is_set, lean.cancel),
        pytest.raises(TreewrightError, match="could not be elaborated"),
    ):
        targets.read_file_goals(target, lean)
    assert asked.is_set()
