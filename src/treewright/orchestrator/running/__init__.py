"""Many goals: a bank of them with its results, or the sorries of a project."""
