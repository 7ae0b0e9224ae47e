import Sample.Basic

def main : IO Unit := pure ()

theorem Main.four_even : Sample.Even 4 := by
  sorry
