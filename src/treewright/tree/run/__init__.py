"""A run: opening it, the loop, and the searches that the loop works for.

In: a `RunRequest` (`open.py`) and the records of the run. Out: events in the journal, nodes as
branches and worktrees, a report.

Imports: `evaluating`, `ideas`, `agents`, `deciding`, `guard`, `repository` and `records` of `tree`,
`search` for policies, and `kernel`. Imported by `validation`, `cheats`, `inspection` and the
command line.

Read first: `coordinator.py` and `loop.py`, the loop from top to bottom; `outcomes.py`, the decision
about every result; `beam_search.py` and `policy_search.py`, the two kinds of search.
"""
