"""Files: atomic writes, the journal and the lease of a run, SQLite, files of untrusted code.

Records and bytes enter; files that survive `kill -9` and power cuts leave. Imports from the rest
of the kernel: errors, the clock and `procs.proctree`, which tells whether a process still runs.
Read first: `atomic.py`, `journal.py`, `lease.py`.
"""
