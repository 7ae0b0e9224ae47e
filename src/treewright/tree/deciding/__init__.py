"""Decisions of a tree run: from recorded numbers to scores, fates, nodes and frontiers. Pure.

In: results of sweeps, records of evaluations and nodes, settings. Out: recommendations, decisions,
the next frontier, the stop reason. Validation calls the same functions again.

Imports: `records` of `tree`, policies and the sequencer of `search`. No module of this package
touches a file, a process or a clock.

Read first: `gate.py`, whether a candidate may be promoted; `beam.py`, which candidates are;
`rounds.py`, from one depth to the next.
"""
