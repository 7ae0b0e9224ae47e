import Sample.Basic

namespace Sample

private def seed : Nat := 2

private theorem seed_even : Even seed := Even.two

theorem left : Even 2 := seed_even

theorem Even.double {n : Nat} (h : Even n) : Even (n + n) := by
  sorry

end Sample
