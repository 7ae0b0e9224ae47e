"""The distributed (cell-view) runner: many cells with local views over one shared tree.

`runner.CellViewRunner` is the way in and takes `proving.cell_settings.CellSettings`, which are part
of `run.json`, and kept beside it. A separate path beside the centralized engine: neither imports
the other, neither replaces the other. `experiment/` compares runs, `measures/` says what damage
does.
"""
