"""Formatted scripts. On real Lean, the shown script is the checked one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proving.runs import Prove, SessionFactory
from treewright.lean.session.answers import Hypothesis
from treewright.lean.verify.replayer import Replayer
from treewright.proving.records import GoalView
from treewright.proving.replay import replay_live, replay_offline
from treewright.proving.script.extraction import Step, render
from treewright.proving.script.formatting import Style, format_script, write_styled
from treewright.proving.settings import Settings, SourceSettings
from treewright.proving.tactics.factory import build_source
from treewright.proving.targets import parse

pytestmark = pytest.mark.xdist_group("lean-session")


def chain(*tactics: str) -> Step:
    step = Step(tactics[-1])
    for tactic in reversed(tactics[:-1]):
        step = Step(tactic, (((0,), step),))
    return step


def split(tactic: str, *bodies: Step, goal: GoalView | None = None) -> Step:
    parts = tuple(((n,), body) for n, body in enumerate(bodies))
    return Step(tactic, parts, (goal,) if goal else ())


def at(case: str, nameless: str, step: Step) -> Step:
    hypotheses = tuple(Hypothesis(f"{n}✝", "T", accessible=False) for n in nameless.split())
    return Step(step.tactic, step.parts, (GoalView("p", hypotheses, case),))


def shown(step: Step, indent: int = 2) -> list[str]:
    return write_styled(step, Style(indent)).splitlines()


def test_cases_that_have_names_are_written_with_them() -> None:
    tactic = "induction n generalizing m with | zero => ?_ | succ n ih => ?_"
    step = split(tactic, chain("rfl"), chain("rw [h]", "rw [ih]", "omega"))
    assert shown(step) == [
        "induction n generalizing m with",
        "| zero => rfl",
        "| succ n ih =>",
        "  rw [h, ih]",
        "  omega",
    ]
    assert shown(step, 4)[3:] == ["    rw [h, ih]", "    omega"]


def test_cases_without_names_get_them_instead_of_rename_i() -> None:
    node = at("node", "l v r l_ih r_ih", chain("rename_i l v r l_ih r_ih", "simp [l_ih, r_ih]"))
    leaf = at("left.leaf", "", chain("rfl"))
    step = split("induction t", leaf, node, goal=GoalView("p"))
    assert shown(step) == [
        "induction t with",
        "| leaf => rfl",
        "| node l v r ihl ihr => simp [ihl, ihr]",
    ]
    one = at("succ", "n n_ih", chain("rename_i n n_ih", "rw [n_ih.symm]"))
    step = split("induction t", leaf, one, goal=GoalView("p"))
    assert shown(step)[2] == "| succ n ih => rw [ih.symm]"


def test_a_case_without_a_name_is_a_next() -> None:
    first, second = chain("rename_i h", "simp [h]"), chain("rename_i h", "intro x", "exact h")
    step = split("split", first, second)
    assert shown(step) == ["split", "next h => simp [h]", "next h =>", "  intro x", "  exact h"]


def test_steps_are_put_together() -> None:
    pair = split("constructor", chain("exact h.2"), chain("exact h.1"))
    step = Step("intro p q", (((0,), Step("intro h", (((0,), pair),))),))
    assert shown(step) == ["intro p q h", "exact ⟨h.2, h.1⟩"]
    assert shown(split("cases b", chain("rfl"), chain("rfl"))) == ["cases b <;> rfl"]


def test_a_distinction_that_is_not_needed_is_left_out() -> None:
    step = split("by_cases h : p", chain("simp_all"), chain("exact absurd h g"))
    assert format_script(step, lambda text: text == "simp_all") == "simp_all"


def test_limits_and_lemmas_that_are_not_needed_are_left_out() -> None:
    last = Step("grind (gen := 4) (ematch := 3) [Even.step, add, Even.zero]")
    script = Step("intro h", (((0,), last),))
    asked: list[str] = []

    def needs_two(text: str) -> bool:
        asked.append(text)
        return "Even.step" in text and "Even.zero" in text

    assert format_script(script, needs_two) == "intro h\ngrind [Even.step, Even.zero]"
    assert len(asked) == 5, "the limits, each lemma, and the whole"
    needs_limits = "intro h\ngrind (gen := 4) (ematch := 3) [Even.step]"
    assert format_script(script, lambda text: "gen" in text and "step" in text) == needs_limits
    assert format_script(script, lambda text: text == render(script)) == render(script)


def test_a_refused_form_is_not_shown() -> None:
    step = split("cases b", at("false", "", chain("a")), at("true", "", chain("b")))
    step = Step(step.tactic, step.parts, (GoalView("p"),))
    assert format_script(step, lambda text: False) == "cases b\n· a\n· b"


TREES = """\
inductive Tree where
    | leaf
    | node (l : Tree) (v : Nat) (r : Tree)

def Tree.mirror : Tree → Tree
    | .leaf => .leaf
    | .node l v r => .node r.mirror v l.mirror

theorem twice (t : Tree) : t.mirror.mirror = t := by
    sorry

theorem inline (n : Nat) : n + 0 = n ∧ True := by sorry
"""
TACTICS = """\
induction t
rename_i l v r l_ih r_ih
show Tree.node _ v _ = _
rw [l_ih]
rw [r_ih]
rfl
constructor
exact trivial
"""


def test_a_file_gets_scripts_that_look_like_it(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path
) -> None:
    path = tmp_path / "Trees.lean"
    path.write_text(TREES)
    settings = Settings(
        simulations=60, batch=2, step_timeout=20.0, sources=SourceSettings(tactics=TACTICS)
    )
    result, directory = prove(parse(f"{path}:twice", None), settings)
    assert [goal.status for goal in result.goals] == ["proved"], result.goals
    assert result.file is not None
    text = Path(result.file).read_text()
    assert "    induction t with\n    | leaf => " in text, text
    assert "    | node l v r ihl ihr =>" in text
    assert "rename_i" not in text
    source = build_source(settings)
    assert replay_offline(directory, source).difference == ""
    assert replay_live(directory, sessions, source, replayer).difference == ""
