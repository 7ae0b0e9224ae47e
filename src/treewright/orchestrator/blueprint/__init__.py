"""A leanblueprint beside what Lean says."""
