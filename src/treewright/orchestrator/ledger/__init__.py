"""The ledger: every attempt in SQLite, and what may be read from it."""
