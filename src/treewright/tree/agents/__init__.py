"""Who implements an idea: planner, coder, reviewer, each on a backend; see `base`."""
