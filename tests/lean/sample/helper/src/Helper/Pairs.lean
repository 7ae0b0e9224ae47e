namespace Helper

theorem swap_swap {α β : Type} (p : α × β) : p.swap.swap = p := by
  cases p
  rfl

end Helper
