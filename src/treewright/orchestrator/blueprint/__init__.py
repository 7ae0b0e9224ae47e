"""Comparing a leanblueprint with Lean and the ledger.

LaTeX files and the states of declarations enter; differences and edits leave. The package may
import `ledger`, `goals`, `lean` and `kernel`. Read `sync.py` first, then `latex.py`.
"""
