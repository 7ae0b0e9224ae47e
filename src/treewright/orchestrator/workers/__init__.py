"""The strategies. Each is a `Worker`: a probe that says whether it can run, and `run`."""
