import Sample.Left
import Sample.Right
import Sample.Shapes
import Sample.Orders

namespace Sample

/-- Rests on nothing that is open. -/
theorem top : Even (2 + 4) := by
  sorry

/-- Rests on a lemma of another module that is open. -/
theorem top_double : Even (4 + 4) := by
  sorry

end Sample
