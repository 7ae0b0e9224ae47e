"""A long file of ordinary declarations, with a `sorry` near its top and one at its end."""

from __future__ import annotations

_BLOCK = """def f{i} : Nat → Nat
  | 0 => {i}
  | n + 1 => f{i} n + 2

theorem f{i}_succ (n : Nat) : f{i} (n + 1) = f{i} n + 2 := by
  rfl

theorem f{i}_eq (n : Nat) : f{i} n = 2 * n + {i} := by
  induction n with
  | zero => simp [f{i}]
  | succ n ih =>
    rw [f{i}_succ, ih]
    omega

@[simp] theorem f{i}_zero : f{i} 0 = {i} := rfl

/-- A small structure. -/
structure S{i} where
  a : Nat
  b : Nat := a + {i}

theorem s{i}_positive (s : S{i}) (h : s.a < s.b) : 0 < s.b := by
  omega

"""
_LINES = _BLOCK.count("\n")


def long_file(lines: int) -> str:
    """Return a file of about that length; `Long.early` and `Long.late` are open."""
    blocks = (_BLOCK.replace("{i}", str(i)) for i in range(max(1, lines // _LINES)))
    early = "theorem early (n : Nat) : n ≤ n + 1 := by\n  sorry\n\n"
    late = "theorem late (n : Nat) : f0 n ≤ f0 n + 1 := by\n  sorry\n"
    return f"namespace Long\n\n{early}{''.join(blocks)}{late}\nend Long\n"
