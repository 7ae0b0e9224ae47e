"""Finding declarations of a Lean environment that may help with a goal."""
