"""The distributed (cell-view) runner: many cells with local views over one shared tree.

`runner.CellViewRunner` is the way in, `settings.CellSettings` what it takes. A separate path beside
the centralized engine: neither imports the other, neither replaces the other.
"""
