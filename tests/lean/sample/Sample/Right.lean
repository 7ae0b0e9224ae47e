import Sample.Notation
import Sample.Macros

namespace Sample

private def seed : Nat := 4

theorem right : 4 is_even := by
  even_step
  even_step
  exact .zero

theorem seed_is : seed is_even := by
  sorry

end Sample
