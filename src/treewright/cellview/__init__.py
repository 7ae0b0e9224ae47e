"""The distributed (cell-view) runner: many cells with local views over one shared graph.

`CellSettings` enter, as part of `run.json`, and iterations leave, in the order of a logical clock.
The runner is separate from the centralized engine: neither imports the other, and neither falls
back to the other. `experiment/` plans and compares runs, `measures/` computes the effect of damage.

The package may import `proving` and the packages below it. Read first: `runner.py` (the clock),
`cell.py` (one cell), `damage.py` (interventions).
"""
