import Std.Data.HashMap
import Sample.Basic

namespace Sample

theorem append_nil_length (xs : List Nat) : (xs ++ []).length = xs.length := by
  sorry

end Sample
