"""Texts: diagnostics, `sorry`s, dependencies, declarations, and syntax trees."""

from __future__ import annotations

import pytest

from treewright.kernel.errors import UsageError
from treewright.lean.session.answers import AuditReport, CheckResult, TacticError
from treewright.lean.session.errors import MissingModule
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.inputs import Theorem, check_script, check_theorem


def checked(session: HostSession, text: str, **options: bool) -> CheckResult:
    result = session.check(text, **options)
    assert isinstance(result, CheckResult), result
    return result


def test_diagnostics_have_their_places(session: HostSession) -> None:
    result = checked(session, 'theorem a : 1 = 1 := rfl\n/- é -/\ndef b : Nat := by\n  exact "x"\n')
    (error, *_) = result.errors
    assert (error.line, error.column, error.severity) == (4, 2, "error")
    assert not result.ok
    assert checked(session, "theorem a : 1 = 1 := rfl").ok


def test_every_sorry_has_its_bytes_its_declaration_and_its_goal(session: HostSession) -> None:
    text = (
        "-- é: sorry in a comment\n"
        "theorem first (n : Nat) : n = n := by\n  sorry\n"
        "namespace N\ntheorem second : ∀ p : Prop, p → p := fun p h => sorry\nend N\n"
        "theorem both : True ∧ True := by\n  constructor\n  all_goals sorry\n"
    )
    places = checked(session, text, sorries=True).sorries
    assert [(p.declaration, p.tactic, len(p.states)) for p in places] == [
        ("first", True, 1),
        ("N.second", False, 1),
        ("both", True, 2),
    ]
    assert all(text.encode()[p.start : p.end] == b"sorry" for p in places)
    assert [p.states[0].goals[0].target for p in places] == ["n = n", "p", "True"]
    (goal,) = places[1].states[0].goals
    assert [h.name for h in goal.hypotheses] == ["p", "h"]
    done = session.run_tactic(places[1].states[0], "exact h")
    assert getattr(done, "complete", False), done


def test_a_target_near_the_top_does_not_wait_for_the_end(session: HostSession) -> None:
    text = (
        "theorem first (n : Nat) : n = n := by\n  sorry\n"
        "theorem N.second : True := by sorry\n"
        'theorem first\' : True := by sorry\ndef broken : Nat := "x"\n'
    )

    def seen(until: str) -> tuple[list[str], int]:
        result = session.check(text, sorries=True, until=until)
        assert isinstance(result, CheckResult)
        return [place.declaration for place in result.sorries], len(result.errors)

    assert seen("first") == (["first"], 0)
    assert seen("second") == (["first", "N.second"], 0)
    assert seen("absent") == (["first", "N.second", "first'"], 1)
    again = text.replace("N.second", "M.first")
    result = session.check(again, sorries=True, until="first")
    assert isinstance(result, CheckResult)
    assert [place.declaration for place in result.sorries] == ["first", "M.first"]


def test_an_error_concerns_what_rests_on_it_and_no_other(session: HostSession) -> None:
    text = (
        "theorem before : 1 = 1 := by sorry\n"
        "theorem wrong : 1 = 2 := by decide\n"
        "theorem behind : 2 = 2 := by sorry\n"
        "theorem user : 1 = 2 := by\n  have := wrong\n  sorry\n"
        "def odd : Nat := true.foo\n"
        "theorem last : 3 = 3 := by sorry\n"
        "open Absent\n"
        "theorem late : 4 = 4 := by sorry\n"
    )
    places = checked(session, text, sorries=True).sorries
    concerned = {p.declaration: p.trouble.line if p.trouble else 0 for p in places}
    assert concerned == {"before": 0, "behind": 0, "user": 2, "last": 0, "late": 9}


def test_what_rests_on_sorry_is_found_whatever_is_said(session: HostSession) -> None:
    text = "theorem a : 1 = 2 := sorry\ntheorem b : 1 = 2 := a\ntheorem c : True := trivial\n"
    result = checked(session, text)
    assert (result.unproved, result.has_sorry, result.ok) == (("a", "b"), True, False)


def test_commands_on_top_of_an_environment(session: HostSession) -> None:
    first = session.elaborate("def two : Nat := 2", keep=True)
    assert isinstance(first, CheckResult)
    assert first.env is not None
    second = session.elaborate("theorem t : two = 2 := rfl", env=first.env)
    assert isinstance(second, CheckResult)
    assert second.ok
    without = session.elaborate("theorem t : two = 2 := rfl")
    assert isinstance(without, CheckResult)
    assert without.errors
    session.free_environment(first.env)


def test_what_a_declaration_rests_on(session: HostSession) -> None:
    text = "axiom odd : 1 = 2\ntheorem t : 1 = 2 := odd\n"
    kept = session.check_file(text, keep=True)
    assert isinstance(kept, CheckResult)
    assert kept.env is not None
    report = session.audit("t", kept.env)
    assert isinstance(report, AuditReport)
    assert (report.kind, report.missing) == ("theorem", ())
    assert [name.split(".")[-1] for name in report.axioms] == ["odd"]
    assert [name.split(".")[-1] for name in report.local] == ["odd", "t"]
    assert isinstance(session.audit("nothing", kept.env), TacticError)


def test_declarations_of_the_library_with_their_types(session: HostSession) -> None:
    found = {d.name: d for d in session.declarations("Nat.add_com")}
    assert found["Nat.add_comm"].kind == "theorem"
    assert found["Nat.add_comm"].type == "∀ (n m : Nat), n + m = m + n"
    assert (found["Nat.add_comm"].module or "").startswith("Init.")
    assert not list(session.declarations("No.such.thing"))


def test_a_module_that_is_not_there(session: HostSession) -> None:
    with pytest.raises(MissingModule, match="No"):
        session.check("import No.Such.Module\n")


def test_the_same_header_is_imported_once(session: HostSession) -> None:
    checked(session, "import Init\ntheorem a : True := trivial\n")
    before = session.memory().envs
    checked(session, "import Init\ntheorem b : True := trivial\n")
    assert session.memory().envs == before


def test_statements_and_scripts_with_other_commands_are_refused(session: HostSession) -> None:
    check_theorem(session, Theorem("t", "p → p", ("p : Prop",)))
    with pytest.raises(UsageError):
        check_theorem(session, Theorem("t", "True := trivial theorem u : True"))
    with pytest.raises(UsageError):
        check_theorem(session, Theorem("Nat.add", "True"))
    check_script(session, "intro h\nexact h")
    with pytest.raises(UsageError):
        check_script(session, "skip)\n(skip")
    text = "theorem a : True := by\n  trivial\n#eval 1\n"
    begin = text.index("#eval")
    assert session.command_within(text, begin, begin + 5) == "Lean.Parser.Command.eval"
    assert session.command_within(text, text.index("trivial"), text.index("#eval") - 1) == ""


def test_which_lean_it_is(session: HostSession) -> None:
    info = session.info
    assert info.lean[:2] == "4."
    assert info.backend == session.host.backend
