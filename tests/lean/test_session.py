"""Sessions on a real Lean: proofs, goals, limits, and input of every shape."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.lean.conftest import state
from tests.lean.endless import SLOW
from tests.waiting import cpu_seconds, until
from treewright.kernel.procs import proctree
from treewright.lean import choice
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.answers import (
    AuditReport,
    Cancelled,
    CheckResult,
    SessionLost,
    TacticError,
    Timeout,
)
from treewright.lean.session.errors import LeanError, MissingModule
from treewright.lean.session.host_session import HostSession

pytestmark = pytest.mark.xdist_group("lean-session")


def test_a_host_session_of_the_bundled_lean(lean: HostSession) -> None:
    assert isinstance(lean, HostSession)
    assert lean.info.backend == "wasm"
    assert lean.info.lean.startswith(choice.BUNDLED_VERSION)


def test_a_proof_step_by_step(lean: HostSession) -> None:
    start = state(lean.start("∀ p q : Prop, p ∧ q → q ∧ p"))
    opened = state(lean.run_tactic(start, "intro p q h"))
    goal = opened.goals[0]
    assert [(h.name, h.type, h.value) for h in goal.hypotheses] == [
        ("p", "Prop", None),
        ("q", "Prop", None),
        ("h", "p ∧ q", None),
    ]
    assert goal.target == "q ∧ p"
    assert goal.pretty == "p q : Prop\nh : p ∧ q\n⊢ q ∧ p"
    split = state(lean.run_tactic(opened, "constructor"))
    assert [g.case for g in split.goals] == ["left", "right"]
    one = state(lean.run_tactic(split, "exact h.2"))
    done = state(lean.run_tactic(one, "exact h.1"))
    assert done.closed
    assert done.complete
    assert done.ms > 0


def test_any_state_can_be_continued_any_number_of_times(lean: HostSession) -> None:
    start = state(lean.start("∀ n : Nat, n = n ∧ True"))
    opened = state(lean.run_tactic(start, "intro n"))
    first = state(lean.run_tactic(opened, "constructor"))
    assert isinstance(lean.run_tactic(opened, "exact nonsense"), TacticError)
    again = state(lean.run_tactic(opened, "constructor"))
    assert [g.hash for g in first.goals] == [g.hash for g in again.goals]
    other = state(lean.run_tactic(start, "intro m"))
    assert other.goals[0].hypotheses[0].name == "m"
    assert opened.goals[0].hash == state(lean.run_tactic(start, "intro n")).goals[0].hash


def test_let_values_inaccessible_names_and_case_tags(lean: HostSession) -> None:
    start = state(lean.start("∀ n : Nat, let k := n + 1; k > n"))
    opened = state(lean.run_tactic(start, "intro _ k"))
    hidden, value = opened.goals[0].hypotheses
    assert not hidden.accessible
    assert hidden.name.endswith("✝")
    assert (value.name, value.value) == ("k", f"{hidden.name} + 1")


def test_goals_that_share_metavariables_form_a_group(lean: HostSession) -> None:
    start = state(lean.start("(∃ x : Nat, x > 3 ∧ x < 5) ∧ True"))
    opened = state(lean.run_tactic(start, "refine ⟨⟨?x, ?_, ?_⟩, ?_⟩"))
    assert opened.groups == ((0, 1, 2), (3,))
    assert len({g.hash for g in opened.goals}) == 4
    part = state(lean.focus(opened, [3]))
    assert [g.target for g in part.goals] == ["True"]
    assert state(lean.run_tactic(part, "trivial")).complete
    rest = state(lean.focus(opened, opened.groups[0]))
    solved = state(lean.run_tactic(rest, "case x => exact 4"))
    assert [g.target for g in solved.goals] == ["4 > 3", "4 < 5"]
    assert state(lean.run_tactic(solved, "all_goals omega")).complete
    assert isinstance(lean.focus(opened, [7]), TacticError)
    assert isinstance(lean.focus(opened, []), TacticError)


def test_the_hash_is_strict(lean: HostSession) -> None:
    def hash_after(statement: str, tactic: str) -> str:
        return state(lean.run_tactic(state(lean.start(statement)), tactic)).goals[0].hash

    base = hash_after("∀ a b : Nat, a < b → True", "intro a b h")
    assert hash_after("∀ x y : Nat, x < y → True", "intro a b h") == base
    different = [
        hash_after("∀ a b : Nat, a < b → True", "intro b a h"),
        hash_after("∀ a b : Nat, a < b → True", "intro a b k"),
        hash_after("∀ a b : Int, a < b → True", "intro a b h"),
        hash_after("∀ a b : Nat, a ≤ b → True", "intro a b h"),
        hash_after("∀ b a : Nat, a < b → True", "intro b a h"),
        hash_after("∀ a b : Nat, a < b → 1 = 1", "intro a b h"),
    ]
    assert base not in different
    assert len(set(different[:2] + different[2:4] + different[5:])) == 5


def test_the_hash_sees_what_printing_hides(lean: HostSession) -> None:
    """Both print as `x = x`, at different types."""
    nat = state(lean.start("(fun x => x = x) (0 : Nat)")).goals[0]
    integer = state(lean.start("(fun x => x = x) (0 : Int)")).goals[0]
    assert nat.target == integer.target
    assert nat.hash != integer.hash


def test_the_hash_is_the_same_in_another_session(lean: HostSession, home: LeanHome) -> None:
    statement = "∀ xs : List Nat, xs.reverse.reverse = xs"
    here = state(lean.run_tactic(state(lean.start(statement)), "intro xs"))
    with HostSession(home) as other:
        other.start("1 = 1")
        there = state(other.run_tactic(state(other.start(statement)), "intro xs"))
    assert here.goals[0].hash == there.goals[0].hash


def test_errors_are_typed(lean: HostSession) -> None:
    start = state(lean.start("∀ n : Nat, n + 0 = n"))
    parse = lean.run_tactic(start, "intro (")
    tactic = lean.run_tactic(start, "exact 5")
    recursion = lean.run_tactic(start, "set_option maxRecDepth 10 in\nsimp; done")
    assert isinstance(parse, TacticError)
    assert parse.kind == "parse"
    assert isinstance(tactic, TacticError)
    assert tactic.kind == "tactic"
    assert isinstance(recursion, TacticError)
    assert recursion.kind == "exhausted"
    assert isinstance(lean.run_tactic(99999, "skip"), TacticError)
    bad = lean.start("∀ n : Nat, nonsense n")
    assert isinstance(bad, TacticError)
    assert bad.kind == "statement"
    assert isinstance(lean.start("∀ n : Nat, ("), TacticError)
    assert isinstance(lean.start("(fun x => x) = (fun x => x)"), TacticError)


def test_sorry_closes_a_state_without_completing_it(lean: HostSession) -> None:
    given_up = state(lean.run_tactic(state(lean.start("1 = 2")), "sorry"))
    assert given_up.closed
    assert given_up.uses_sorry
    assert not given_up.complete


def test_several_lines_are_one_step(lean: HostSession) -> None:
    script = "intro a b h\nhave k := h.symm\nexact k -- done"
    assert state(lean.run_tactic(state(lean.start("∀ a b : Nat, a = b → b = a")), script)).complete


def test_start_from_a_declaration(lean: HostSession) -> None:
    by_name = state(lean.start_declaration("Nat.add_comm"))
    assert by_name.goals[0].target == "∀ (n m : Nat), n + m = m + n"
    source = (
        "theorem t {α : Type} [Inhabited α] (x : α) (h : x = default) : default = x := by sorry"
    )
    opened = state(lean.start_declaration(source))
    assert [h.name for h in opened.goals[0].hypotheses] == ["α", "inst✝", "x", "h"]
    assert state(lean.run_tactic(opened, "exact h.symm")).complete
    assert isinstance(lean.start_declaration("theorem t : 1 = 1 := rfl"), TacticError)
    assert isinstance(lean.start_declaration("no_such_name"), TacticError)


def test_imports_and_preamble(home: LeanHome) -> None:
    with HostSession(home, ["Lean"], "def seven := 7\nopen Nat") as session:
        assert session.info.imports == ("Lean",)
        start = state(session.start("seven = succ 6"))
        assert state(session.run_tactic(start, "rfl")).complete
        session.reset()
        assert state(session.start("seven = 7"))
    with pytest.raises(LeanError, match="preamble:1:"):
        HostSession(home, preamble="def x : Nat := no")


def test_a_missing_module_is_an_error_that_says_what_to_do(home: LeanHome) -> None:
    with pytest.raises(MissingModule, match=r"Mathlib.*--lean native"):
        HostSession(home, ["Mathlib"])


def test_check_reports_positions(lean: HostSession) -> None:
    result = lean.check('theorem a : 1 = 1 := rfl\n\ntheorem é : Nat := by\n  exact "x"\n')
    assert isinstance(result, CheckResult)
    assert not result.ok
    error = result.errors[0]
    assert (error.line, error.column) == (4, 2)
    assert error.format("f.lean").startswith("f.lean:4:3: error: ")
    assert isinstance(ok := lean.check("example : 1 = 1 := rfl"), CheckResult)
    assert ok.ok
    assert isinstance(open_ := lean.check("example : 1 = 2 := sorry"), CheckResult)
    assert open_.has_sorry
    assert not open_.ok


def test_audit(lean: HostSession) -> None:
    result = lean.elaborate(
        "theorem a (p : Prop) : p ∨ ¬p := Classical.em p\n"
        "theorem b (p q : Prop) (h : p ↔ q) : p = q := propext h\n"
        "theorem c : 1 = 2 := sorry\n",
        keep=True,
    )
    assert isinstance(result, CheckResult)
    reports = {name: lean.audit(name, result.env) for name in "abc"}
    assert all(isinstance(r, AuditReport) for r in reports.values())
    assert {n: r.axioms for n, r in reports.items() if isinstance(r, AuditReport)} == {
        "a": (),
        "b": ("propext",),
        "c": ("sorryAx",),
    }
    assert isinstance(lean.audit("nothing"), TacticError)


def test_declarations(lean: HostSession) -> None:
    found = {d.name: d for d in lean.declarations("Nat.add_")}
    assert found["Nat.add_comm"].kind == "theorem"
    assert found["Nat.add_comm"].type == "∀ (n m : Nat), n + m = m + n"
    assert found["Nat.add_comm"].module == "Init.Data.Nat.Basic"
    assert all(name.startswith("Nat.add_") for name in found)
    inside = list(lean.declarations(module="Init.Data.Option.Lemmas", types=False))
    assert inside
    assert {d.module for d in inside} == {"Init.Data.Option.Lemmas"}
    every = list(lean.declarations(types=False))
    assert len({d.name for d in every}) == len(every) > 20_000
    axioms = {d.name for d in every if d.kind == "axiom"}
    assert {"propext", "Classical.choice", "Quot.sound", "sorryAx"} <= axioms
    assert len(axioms) < 20


def test_a_time_limit_keeps_the_session(lean: HostSession) -> None:
    start = state(lean.start("∀ n : Nat, n = n"))
    before = cpu_seconds(lean.pid)
    result = lean.run_tactic(start, SLOW, timeout=0.5)
    assert isinstance(result, Timeout)
    assert cpu_seconds(lean.pid) - before < 20  # not the minutes it would take
    assert lean.alive
    assert state(lean.run_tactic(start, "intro n")).goals


def test_cancelling_keeps_the_session(lean: HostSession) -> None:
    start = state(lean.start("∀ n : Nat, n = n"))
    results: list[object] = []
    begun = threading.Event()

    def work() -> None:
        begun.set()
        results.append(lean.run_tactic(start, SLOW, timeout=600))

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    before = cpu_seconds(lean.pid)
    while thread.is_alive():
        lean.cancel()
        thread.join(0.01)
    assert isinstance(results[0], Cancelled)
    assert cpu_seconds(lean.pid) - before < 20  # not until its limit of 600 s
    assert state(lean.run_tactic(start, "intro n")).goals


def test_cancelling_nothing_does_nothing(lean: HostSession) -> None:
    lean.cancel()
    assert state(lean.start("1 = 1")).goals


def test_past_the_hard_limit_the_process_is_ended(home: LeanHome) -> None:
    with HostSession(home, preamble="partial def loop (n : Nat) : Nat := loop (n + 1)") as session:
        # The interpreter in an endless loop does not look at the cancel token. When it has run
        # something, it gets there in a hundredth of the limit; a busy machine has time.
        assert not isinstance(session.elaborate("#eval 1 + 1"), SessionLost)
        result = session.elaborate("#eval loop 0", timeout=1.5)
        assert isinstance(result, SessionLost)
        assert not session.alive
        assert isinstance(session.run_tactic(1, "skip"), SessionLost)


def test_states_can_be_freed(lean: HostSession) -> None:
    start = state(lean.start("∀ n : Nat, n = n"))
    states = [state(lean.run_tactic(start, "intro n")) for _ in range(20)]
    assert lean.memory().states == 21
    lean.free(states)
    assert lean.memory().states == 1
    assert isinstance(lean.run_tactic(states[0], "rfl"), TacticError)


# -- input of every shape -------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\n",
        "\x00",
        "exact\x00rfl",
        "🦀🦀🦀",
        "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
        "é" * 1000,
        "\r\n",
        "(" * 5000,
        "skip\n" * 2000,
        "--" + "x" * 100_000,
        '"' + "a" * 1000,
        "\u202e\u200b",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_odd_text_gives_a_result(lean: HostSession, text: str) -> None:
    start = state(lean.start("1 = 1"))
    result = lean.run_tactic(start, text, timeout=20)
    assert not isinstance(result, SessionLost), result
    assert state(lean.run_tactic(start, "rfl")).complete


def test_unicode_survives(lean: HostSession) -> None:
    start = state(lean.start('∀ «α β» : Nat, «α β» = «α β» ∧ "日本語🦀" = "日本語🦀"'))
    opened = state(lean.run_tactic(start, "intro «ж ∀»"))
    assert opened.goals[0].hypotheses[0].name == "«ж ∀»"
    assert "日本語🦀" in opened.goals[0].target


def test_a_statement_of_a_megabyte(lean: HostSession) -> None:
    string = "x" * 1_000_000
    start = state(lean.start(f'"{string}" = "{string}"', timeout=60))
    assert len(start.goals[0].target) > 1_000_000
    assert state(lean.run_tactic(start, "rfl", timeout=60)).closed


def test_deep_nesting_ends_in_a_result(lean: HostSession) -> None:
    for text in ("(" * 500 + "True" + ")" * 500, "¬" * 2_000 + "True", " ∧ ".join(["True"] * 1000)):
        result = lean.start(text, timeout=30)
        assert not isinstance(result, SessionLost), (text[:10], result)
    assert state(lean.start("1 = 1")).goals


def test_nesting_beyond_every_limit_is_a_lost_session_at_worst(home: LeanHome) -> None:
    with HostSession(home) as session:
        result = session.start("¬" * 300_000 + "True", timeout=3)
        assert isinstance(result, TacticError | SessionLost | Timeout), result
        assert session.alive == (not isinstance(result, SessionLost))


def test_ten_thousand_goals_at_once(lean: HostSession) -> None:
    start = state(lean.start(f"∀ p : Prop, ({'p → ' * 100}p) → p"))
    opened = state(lean.run_tactic(start, "intro p h"))
    split = state(lean.run_tactic(opened, "apply h <;> apply h", timeout=60))
    assert len(split.goals) == 10_000
    assert len({goal.id for goal in split.goals}) == 10_000
    assert len({goal.hash for goal in split.goals}) == 1
    assert len(split.groups) == 10_000


def test_a_step_that_exhausts_the_heap_is_a_lost_session(home: LeanHome) -> None:
    with HostSession(home) as session:
        result = session.elaborate("#eval (Array.replicate 600000000 0)[0]!", timeout=60)
        assert isinstance(result, SessionLost), result
        assert "memory" in result.reason
        assert not session.alive


# -- the end of a session ---------------------------------------------------------------------


def test_closing_from_another_thread_ends_a_running_step(home: LeanHome) -> None:
    session = HostSession(home)
    start = state(session.start("∀ n : Nat, n = n"))
    results: list[object] = []
    thread = threading.Thread(
        target=lambda: results.append(session.run_tactic(start, SLOW, timeout=600))
    )
    thread.start()
    while session._process._running_id is None:
        time.sleep(0.001)
    session.close()
    thread.join(120)  # its limit is ten minutes
    assert not thread.is_alive()
    assert isinstance(results[0], SessionLost)
    session.close()
    session.cancel()
    assert isinstance(session.start("1 = 1"), SessionLost)


def test_a_program_that_forgets_to_close_leaves_nothing_behind(home: LeanHome) -> None:
    program = (
        "from treewright.lean.hosts.wasm.install import ensure_installed\n"
        "from treewright.lean.session.host_session import HostSession\n"
        "session = HostSession(ensure_installed())\n"
        "print(session.pid)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(f"/proc/{int(done.stdout)}").exists()


def test_killing_the_program_ends_its_sessions(home: LeanHome) -> None:
    program = (
        "import time\n"
        "from treewright.lean.hosts.wasm.install import ensure_installed\n"
        "from treewright.lean.session.host_session import HostSession\n"
        "session = HostSession(ensure_installed())\n"
        "print(session.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        child.kill()
    until(lambda: not Path(f"/proc/{pid}").exists(), what="the end of the session's process")


def test_big_numbers_in_names_and_statements(lean: HostSession) -> None:
    text = """def x.«2147483648» : Nat := 4294967296
theorem big : 2 ^ 31 < x.«2147483648» := by sorry
"""
    found = lean.check(text, sorries=True)
    assert isinstance(found, CheckResult)
    assert not found.errors
    assert found.sorries[0].declaration == "big"
    assert "2 ^ 31" in found.sorries[0].states[0].goals[0].target
    assert state(lean.run_tactic(found.sorries[0].states[0], "decide")).complete


def test_a_text_that_says_module_is_one(lean: HostSession) -> None:
    text = 'def f := 1\nnotation "one" => f\n'
    private, plain = lean.check(f"module\n{text}"), lean.check(text)
    assert isinstance(private, CheckResult)
    assert isinstance(plain, CheckResult)
    assert private.errors
    assert not plain.errors


def test_print_axioms_mentions_the_axioms_of_the_library(lean: HostSession) -> None:
    text = """axiom magic : ∀ n : Nat, n = 0
theorem rests : 3 + 4 = 0 := (Nat.add_comm 3 4).trans (magic (4 + 3))
#print axioms rests
"""
    done = lean.check(text)
    assert isinstance(done, CheckResult)
    (said,) = done.diagnostics
    assert said.text.startswith("'rests' depends on axioms: [magic] and on those of the library's")


def test_a_death_right_after_the_start_leaves_no_lean() -> None:
    """It runs, and its group has not been told to the watchdog yet. One that loads its library
    then does not notice that no request will come."""
    script = """
import os, signal
from treewright.kernel.procs import watchdog
from treewright.lean.session import process
from treewright.lean.hosts.host import Launch
class Loading:
    def launch(self):
        return Launch(["sleep", "600"], "/", {"PATH": os.environ["PATH"]})
def die(self, group, marker, *more):
    print(marker, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
watchdog.Watchdog.guarding = die
process.LeanProcess(Loading())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False, timeout=120
    )
    assert done.returncode == -signal.SIGKILL
    marker = done.stdout.strip()
    assert marker.startswith("lean:")
    until(lambda: not proctree.marked(marker), seconds=30, what="the watchdog ends it")
