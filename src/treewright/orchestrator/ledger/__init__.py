"""The ledger: every attempt in one SQLite file, and the sums over them.

Attempts enter; statistics, cached tactics and lessons leave. The package may import `goals`,
`bandit`, `proving.learning` and `kernel`. Read `schema.py` first, then `ledger.py` and
`attempts.py`.
"""
