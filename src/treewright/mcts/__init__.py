"""Proof search: AND/OR trees over Lean goals, and the two runners that grow them.

`prooftree` is the structure both share; `centralized` is the baseline engine, `cellview` the
distributed runner beside it. Neither knows of the other.
"""
