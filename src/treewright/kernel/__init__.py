"""Durable runs: directories, leases, atomic files, journals, processes, budgets.

The kernel knows nothing of git, Lean or sweeps. Everything above it stands on
three promises: a write that returned is on disk, a run has one owner at a time,
and a process that was started here can be ended with all its descendants.
"""
