"""Proof search: AND/OR trees over Lean goals, and what runners need to grow them.

`search.andor` has the graph that all of them share; `centralized` is the baseline engine. The
distributed runner is `treewright.cellview`, beside it. Neither knows of the other.
"""
