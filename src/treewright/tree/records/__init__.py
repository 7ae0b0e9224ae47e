"""The facts of a run: their types, what can happen to them, and where they are kept."""
