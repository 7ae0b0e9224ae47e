"""ByT5 in numpy, for ReProver's models in a local directory.

A proof state and premises enter; tactics with scores leave. The package may import `premises`,
`lean` and `kernel`. Read `reprover.py` first, then `model.py`.
"""
