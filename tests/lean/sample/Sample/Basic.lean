namespace Sample

/-- The even numbers. -/
inductive Even : Nat → Prop
  | zero : Even 0
  | step {n : Nat} : Even n → Even (n + 2)

protected theorem Even.two : Even 2 := .step .zero

theorem Even.add {m n : Nat} (hm : Even m) (hn : Even n) : Even (m + n) := by
  induction hn with
  | zero => exact hm
  | step _ ih => exact ih.step

end Sample
