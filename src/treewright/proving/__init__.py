"""Proof search: AND/OR graphs over Lean goals, from a statement to a checked proof.

A target (a proposition, a file or a project) enters, and a run directory leaves: `run.json`,
`trace.jsonl`, `result.json`, a report and the file with its proofs. A goal is proved if Lean's
replay check accepted its script.

The package may import `premises`, `lean`, `llm`, `search` and `kernel`. The distributed runner is
`treewright.cellview`, which builds on this package; neither runner knows of the other.

Read first: `phases.py` (one goal from search to result), `search.py` (the loop of one search),
`records.py` (the lines of the trace).
"""
