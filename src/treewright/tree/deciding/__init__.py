"""Decisions of a tree run: from recorded numbers to scores, fates, nodes and frontiers. Pure.

In: results of sweeps, records of evaluations and nodes, settings. Out: recommendations, decisions,
the next frontier, the stop reason. Validation calls the same functions again.

Imports: `records` and the configuration of `tree`, policies and the sequencer of `search`, `llm`
for usage, `kernel`. No module of this package touches a file (but `results.read_results`), a
process or a clock.

Read first: `scoring.py`, from results to a recommendation; `promotion.py`, whether a candidate may
be promoted; `rounds.py`, beam search from one depth to the next (`policy_state.py` for policies).
"""
