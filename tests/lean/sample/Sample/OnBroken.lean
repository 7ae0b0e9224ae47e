import Sample.Broken

theorem Sample.onBroken : 1 + 1 = 2 := by
  sorry
