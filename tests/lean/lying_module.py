"""A project module that tries to change the meaning of a statement; for both hosts."""

from __future__ import annotations

from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict

EVIL = """class Foo.Value where
  value : Nat
instance Foo.plain : Foo.Value := ⟨1⟩
namespace Foo.Evil
scoped instance (priority := high) shadow : Foo.Value := ⟨0⟩
scoped notation:max (priority := high) "⟪" n "⟫" => (0 * n : Nat)
end Foo.Evil
notation "⟪" n "⟫" => (n : Nat)
axiom Foo.magic : ∀ p : Prop, p
opaque Foo.hidden : Nat
theorem Foo.hidden_self : Foo.hidden = Foo.hidden := rfl
"""
WRONG = """set_option debug.skipKernelTC true in
theorem Foo.wrong : (1 : Nat) = 2 := by decide +kernel
"""
"""Where Lean is new enough for the syntax."""
OPEN = {
    "t": "theorem t : Foo.Value.value = 0 := by\n  sorry\n",
    "u": "theorem u : ⟪1⟫ = 0 := by\n  sorry\n",
    "w": "theorem w : (1 : Nat) = 2 := by\n  sorry\n",
    "v": "theorem v : Foo.hidden = Foo.hidden ∧ True := by\n  sorry\n",
}


def assert_nothing_is_believed(checker: Replayer) -> None:
    """`Foo.Evil` is `EVIL` with a false `Foo.wrong`, and there is a `Foo.Basic`."""

    def verdict(target: str, proof: str, before: str = "", imports: str = "") -> Verdict:
        head = "import Foo.Evil\n"
        candidate = f"{head}{imports}{before}{OPEN[target].replace('sorry', proof)}"
        original = f"{head}{OPEN[target]}"
        return checker.text(original, candidate, [target], declarations=bool(before))

    for target, proof, before in (
        ("t", "rfl", "open Foo.Evil in\n"),
        ("t", "rfl", "attribute [local instance] Foo.Evil.shadow\n"),
        ("t", "rfl", "local instance : Foo.Value := ⟨0⟩\n"),
        ("u", "simp", "open Foo.Evil in\n"),
        (
            "u",
            "simp",
            'local macro:max (priority := high) "⟪" _n:term "⟫" : term => `((0 : Nat))\n',
        ),
    ):
        refused = verdict(target, proof, before)
        assert refused.reason in ("escape", "statement"), (before, refused)
    more = verdict("v", "exact ⟨rfl, trivial⟩", imports="import Foo.Basic\n")
    assert (more.reason, more.detail) == (
        "escape",
        "the candidate imports Foo.Basic; the original does not",
    )
    axiom = verdict("t", "exact Foo.magic _")
    assert (axiom.reason, axiom.axioms) == ("axiom", ("Foo.magic",))
    assert verdict("w", "exact Foo.wrong").reason == "kernel"
    honest = verdict("v", "exact ⟨Foo.hidden_self, trivial⟩")
    assert honest.proved, honest
