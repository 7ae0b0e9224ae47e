"""Compare the Lean files of a change with those of a base commit, and try to prove new `sorry`s.

A directory and a commit enter; findings, a patch and a summary leave. The package may import `tree`
(for git), `proving` and the packages below them; only `cli` imports it.

Read first: `changes.py` (files and sorries before and after), `findings.py` (the result),
`sorry_prover.py` (the proof runs).
"""
