import Sample.Top
import Helper

namespace Sample

theorem swapped (p : Nat × Nat) : p.swap.swap = p := by
  sorry

end Sample
