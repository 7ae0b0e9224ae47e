"""Text that tries to pass for a proof. None of it may."""

from __future__ import annotations

import pytest

from treewright.lean.replay import Replayer, Verdict

pytestmark = pytest.mark.xdist_group("lean-replay")

FALSE = "theorem target : 1 = 2 := by\n  sorry\n"


def judge(replayer: Replayer, original: str, candidate: str, name: str = "target") -> Verdict:
    return replayer.text(original, candidate, [name], declarations=True, timeout=60)


# Scripts that stand in the place of `sorry` in a proof of 1 = 2.
SCRIPTS = {
    "sorry in a tactic": "exact sorry",
    "sorry behind have": "have h : 1 = 2 := sorry\n  exact h",
    "sorry behind show": "show 1 = 2\n  exact (sorry : 1 = 2)",
    "sorry in parentheses": "(sorry)",
    "sorry after a comment": "/- nothing -/ sorry -- done",
    "admit": "admit",
    "sorryAx by name": "exact sorryAx _",
    "sorryAx applied": "exact @sorryAx (1 = 2) true",
    "sorryAx in escaped name": "exact «sorryAx» _",
    "sorry in the last branch": "first | rfl | decide | sorry",
    "sorry by refine": "refine ?_\n  all_goals sorry",
    "stop leaves the rest": "stop\n  rfl",
    "native_decide": "native_decide",
    "decide with native": "decide +native",
    "decide configured native": "decide (config := { native := true })",
    "ofReduceBool": "exact of_decide_eq_true (Lean.ofReduceBool (decide (1 = 2)) true rfl)",
    "trustCompiler": "exact absurd Lean.trustCompiler (by decide)",
    "lcProof": "exact lcProof",
    "lcUnreachable": "exact lcUnreachable",
    "unsafe term": "exact unsafe lcProof",
    "unsafeCast": "exact unsafe unsafeCast trivial",
    "run_tac": "run_tac Lean.Elab.Tactic.evalTactic (← `(tactic| sorry))",
    "by_elab": "exact by_elab return Lean.mkConst ``True",
    "skipKernelTC in a tactic": "set_option debug.skipKernelTC true in\n  rfl",
    "skipKernelTC in a term": "exact set_option debug.skipKernelTC true in rfl",
    "unknown option": "set_option debug.byAsSorry true in\n  rfl",
    "byAsSorry in a term": "exact set_option debug.byAsSorry true in by rfl",
    "axiom after the proof": "exact cheat\n\naxiom cheat : 1 = 2",
    "unfinished, another command": "skip\n\ntheorem other : 1 = 1 := rfl",
    "early end by comment": "skip /-",
    "string swallows the rest": 'exact "',
    "homoglyph of a lemma": "exact Nаt.rfl",
    "homoglyph of sorry": "exact sоrry",
    "fullwidth letters": "ｅｘａｃｔ sorry",
    "invisible letters": "exact so\u200brry",
    "right-to-left override": "exact \u202eyrros",
    "self reference": "exact target",
    "recursive call": "exact target.symm.symm",
    "NUL": "rfl\x00",
    "local notation": 'trivial\n\nlocal notation "1" => 2',
    "exit": "trivial\n\n#exit",
    "eval that writes": 'trivial\n\n#eval IO.FS.writeFile "x" "y"',
    "run_cmd": "trivial\n\nrun_cmd pure ()",
    "import in the middle": "trivial\n\nimport Lean",
    "omega is no oracle": "omega",
    "simp with a false hypothesis": "simp [show (1 : Nat) = 2 from sorry]",
    "exfalso and contradiction": "exfalso\n  contradiction",
    "propext of nonsense": "exact (propext ⟨fun _ => trivial, fun _ => rfl⟩ ▸ trivial : 1 = 2)",
    "include_str": 'exact include_str "x"',
    "huge decide": "exact of_decide_eq_true (Eq.refl true : decide (1 = 2) = true)",
    "nested by with sorry": "exact (by exact (by exact (by sorry)))",
    "calc with sorry": "calc 1 = 3 := sorry\n       _ = 2 := sorry",
    "let hides sorry": "let x : 1 = 2 := by sorry\n  exact x",
    "conv sorry": "conv => lhs; tactic => sorry",
    "grind with axiom lemma": "grind [sorryAx]",
    "exact? cannot help": "exact?",
    "code in a configuration": "simp (config := unsafeBaseIO (pure {}))",
    "code in a configuration item": "simp (maxSteps := unsafeBaseIO (pure 5))",
    "block in a configuration": "simp (maxSteps := by exact 5)",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_no_script_proves_a_falsehood(replayer: Replayer, script: str) -> None:
    verdict = judge(replayer, FALSE, f"theorem target : 1 = 2 := by\n  {script}\n")
    assert not verdict.proved, script
    assert verdict.reason not in ("lost", "original"), verdict


# Whole texts: what stands before and around the theorem is replaced as well.
HEAD = "def two : Nat := 2\n"
ORIGINAL = HEAD + "theorem target : two = 1 := by\n  sorry\n"
WHOLE = {
    "axiom": "axiom cheat : two = 1\ntheorem target : two = 1 := cheat\n",
    "private axiom": "private axiom cheat : two = 1\ntheorem target : two = 1 := cheat\n",
    "axiom in a namespace": "namespace A\naxiom c : two = 1\nend A\ntheorem target : two = 1 := A.c\n",
    "opaque constant": "opaque cheat : two = 1\ntheorem target : two = 1 := cheat\n",
    "statement weakened": "theorem target : two = 2 := rfl\n",
    "statement with a hypothesis": "theorem target (h : two = 1) : two = 1 := h\n",
    "statement hypothesised by variable": "variable (h : two = 1)\ninclude h\ntheorem target : two = 1 := h\n",
    "auto-bound implicit": "set_option autoImplicit true in\ntheorem target : tvo = tvo := rfl\n",
    "redefined number": "instance : OfNat Nat 1 := ⟨2⟩\ntheorem target : two = 1 := rfl\n",
    "local instance": "local instance : OfNat Nat 1 := ⟨2⟩\ntheorem target : two = 1 := rfl\n",
    "instance by def and attribute": "def bad : OfNat Nat 1 := ⟨2⟩\nattribute [local instance] bad\ntheorem target : two = 1 := rfl\n",
    "instance by attribute on def": "@[instance] def bad : OfNat Nat 1 := ⟨2⟩\ntheorem target : two = 1 := rfl\n",
    "reducible instance": "@[reducible, instance] def bad : OfNat Nat 1 := ⟨2⟩\ntheorem target : two = 1 := rfl\n",
    "notation": 'notation "two" => 1\ntheorem target : two = 1 := rfl\n',
    "local notation": 'local notation "two" => 1\ntheorem target : two = 1 := rfl\n',
    "macro": 'macro "two" : term => `(1)\ntheorem target : two = 1 := rfl\n',
    "macro_rules": "macro_rules | `($a = $b) => `(True)\ntheorem target : two = 1 := trivial\n",
    "infix": 'infix:50 " = " => fun _ _ => True\ntheorem target : two = 1 := trivial\n',
    "syntax and elab": 'elab "cheat" : tactic => Lean.Elab.Tactic.evalTactic (← `(tactic| sorry))\ntheorem target : two = 1 := by cheat\n',
    "namespace shadowing": "namespace B\ndef two := 1\ntheorem target : two = 1 := rfl\nend B\n",
    "shadowed by open": "namespace B\ndef two := 1\nend B\nopen B in\ntheorem target : B.two = 1 := rfl\n",
    "open hiding": "namespace B\ndef two := 1\nend B\nsection\nopen B hiding two\ntheorem target : B.two = 1 := rfl\nend\n",
    "protected twin": "namespace B\nprotected def two := 1\ntheorem target : B.two = 1 := rfl\nend B\n",
    "private twin": "private def two' := 1\nprivate theorem target : two' = 1 := rfl\n",
    "target as definition": "def target : two = 1 → two = 1 := id\n",
    "target as instance": "class C : Prop where h : two = 1\ntheorem target [c : C] : two = 1 := c.h\n",
    "target of structure": "structure target : Prop where h : two = 1\n",
    "renamed": "theorem target' : two = 1 := by decide\n",
    "commented out": "/- theorem target : two = 1 := by sorry -/\n",
    "inside a string": 'def s := "theorem target : two = 1 := by"\n',
    "implemented_by": "def one : Nat := 1\n@[implemented_by one] def tvo : Nat := 2\ntheorem target : two = 1 := by native_decide\n",
    "extern": '@[extern "lean_nat_sub"] opaque cheat : Nat → Nat\ntheorem target : two = 1 := by native_decide\n',
    "csimp": "@[csimp] theorem c : @Nat.add = @Nat.mul := sorry\ntheorem target : two = 1 := by native_decide\n",
    "unsafe definition": "unsafe def cheat : two = 1 := lcProof\ntheorem target : two = 1 := cheat\n",
    "partial definition": "partial def cheat (n : Nat) : two = 1 := cheat n\ntheorem target : two = 1 := cheat 0\n",
    "skipKernelTC": "set_option debug.skipKernelTC true\ntheorem target : two = 1 := rfl\n",
    "skipKernelTC in": "set_option debug.skipKernelTC true in\ntheorem target : two = 1 := rfl\n",
    "addDecl by run_cmd": "open Lean in\nrun_cmd Lean.addDecl (.axiomDecl { name := `cheat, levelParams := [], type := .const ``False [], isUnsafe := false })\ntheorem target : two = 1 := cheat.elim\n",
    "initialize": "initialize pure ()\ntheorem target : two = 1 := sorry\n",
    "eval": "#eval (1 : Nat)\ntheorem target : two = 1 := rfl\n",
    "attribute with code": "@[simproc] def x := 1\ntheorem target : two = 1 := by simp\n",
    "simp lemma from sorry": "@[simp] theorem c : two = 1 := sorry\ntheorem target : two = 1 := by simp\n",
    "sorry in a helper": "theorem c : two = 1 := by sorry\ntheorem target : two = 1 := c\n",
    "sorry in an instance": "instance c : Inhabited (PLift (two = 1)) := ⟨⟨sorry⟩⟩\ntheorem target : two = 1 := c.default.down\n",
    "sorry in where": "theorem target : two = 1 := c\nwhere c : two = 1 := sorry\n",
    "sorry in termination": "theorem target : two = 1 := c 0\nwhere c (n : Nat) : two = 1 := c (n + 1)\ntermination_by n\ndecreasing_by sorry\n",
    "non-terminating": "theorem target : two = 1 := target\n",
    "mutual non-terminating": "mutual\ntheorem target : two = 1 := c\ntheorem c : two = 1 := target\nend\n",
    "inconsistent inductive": "inductive Bad : Prop where | mk : (Bad → False) → Bad\ntheorem target : two = 1 := sorry\n",
    "deriving handler": "inductive E | a deriving Nonsense\ntheorem target : two = 1 := sorry\n",
    "universe trick": "universe u\ntheorem target : two = 1 := (sorry : ULift.{u} (PLift (two = 1))).down.down\n",
    "no target at all": "theorem other : two = 2 := rfl\n",
    "declared twice": "theorem target : two = 2 := rfl\ntheorem target : two = 1 := rfl\n",
    "example instead": "example : two = 1 := by decide\n",
    "scoped notation": 'namespace N\nscoped notation "two" => 1\nend N\nopen N in\ntheorem target : two = 1 := rfl\n',
    "default_instance": "@[default_instance 10000] def c : OfNat Nat 1 := ⟨2⟩\ntheorem target : two = 1 := rfl\n",
    "coercion": "structure W where n : Nat\n@[coe] def W.toNat (w : W) := 1\ninstance : Coe W Nat := ⟨W.toNat⟩\ntheorem target : two = 1 := rfl\n",
}


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE.keys())
def test_no_text_proves_a_falsehood(replayer: Replayer, text: str) -> None:
    verdict = judge(replayer, ORIGINAL, HEAD + text)
    assert not verdict.proved, text
    assert verdict.reason not in ("lost", "original"), verdict


# Changes to what the statement is made of, with a proof that then goes through.
MEANING = {
    "definition changed": "def two : Nat := 1\ntheorem target : two = 1 := rfl\n",
    "definition made reducible to one": "abbrev two : Nat := 1\ntheorem target : two = 1 := rfl\n",
    "definition turned into a parameter": "variable (two : Nat) (h : two = 1)\ninclude h\ntheorem target : two = 1 := h\n",
    "definition made an inductive": "inductive T | two\nexport T (two)\ntheorem target : two = two := rfl\n",
    "definition moved into a class": "class Two where two : Nat := 1\nexport Two (two)\ntheorem target [Two] : two = two := rfl\n",
    "definition by sorry": "noncomputable def two : Nat := sorry\ntheorem target : two = 1 := sorry\n",
    "definition gone": "theorem target : 2 = 2 := rfl\n",
}


@pytest.mark.parametrize("text", MEANING.values(), ids=MEANING.keys())
def test_the_meaning_of_the_statement_cannot_be_changed(replayer: Replayer, text: str) -> None:
    verdict = judge(replayer, ORIGINAL, text)
    assert not verdict.proved, text
    assert verdict.reason not in ("lost", "original"), verdict


def test_what_a_text_declared_elsewhere_must_stay(replayer: Replayer) -> None:
    original = "theorem first : 1 + 1 = 2 := rfl\ntheorem target : 2 + 2 = 4 := by\n  sorry\n"
    weaker = "theorem first : True := trivial\ntheorem target : 2 + 2 = 4 := by\n  rfl\n"
    gone = "theorem target : 2 + 2 = 4 := by\n  rfl\n"
    assert judge(replayer, original, weaker).reason == "statement"
    assert judge(replayer, original, gone).reason == "missing"


def test_a_definition_elsewhere_must_keep_its_value(replayer: Replayer) -> None:
    original = "def limit : Nat := 5\ntheorem target : 1 = 1 := by\n  sorry\n"
    candidate = "def limit : Nat := 6\ntheorem target : 1 = 1 := by\n  rfl\n"
    assert judge(replayer, original, candidate).reason == "statement"


def test_configurations_never_run(replayer: Replayer) -> None:
    """Lean compiles and runs them, unsafe or not; so generated ones may only be plain."""
    original = "theorem target : 1 + 1 = 2 := by\n  sorry\n"
    for script in ("simp (maxSteps := unsafeBaseIO (pure 5))", "decide +native"):
        verdict = judge(replayer, original, original.replace("sorry", script))
        assert verdict.reason == "escape", verdict
    for script in (
        "simp (maxSteps := 500)",
        "simp +arith",
        "decide +kernel",
        "omega (splitMinMax := false)",
    ):
        verdict = judge(replayer, original, original.replace("sorry", script))
        assert verdict.proved, (script, verdict)


def test_a_comment_cannot_swallow_a_later_theorem(replayer: Replayer) -> None:
    original = "theorem target : 1 = 1 := by\n  sorry\ntheorem later : 2 = 2 := rfl\n"
    candidate = "theorem target : 1 = 1 := by\n  rfl /-\ntheorem later : 2 = 2 := rfl\n-/\n"
    assert judge(replayer, original, candidate).reason == "missing"


def test_an_honest_proof_after_all_of_this_still_passes(replayer: Replayer) -> None:
    verdict = replayer.theorem("∀ a b : Nat, a + b = b + a", "intro a b\nexact Nat.add_comm a b")
    assert verdict.proved, verdict
