"""Premises: declarations that may help with a goal, from a searchable index.

Declarations of a Lean session enter an index file, and ranked premises for a text leave. The
package may import `lean` and `kernel`. Read first: `index.py` (searching), `index_builder.py`
(building), `store.py` (the file).
"""
