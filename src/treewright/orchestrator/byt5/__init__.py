"""ByT5 in numpy: enough to run ReProver's models from a local directory."""
