import Lean

open Lean Elab Tactic in
elab "first_goal_only" : tactic => do setGoals [← getMainGoal]

theorem Sample.meta_one : 1 = 1 := by
  first_goal_only
  rfl
