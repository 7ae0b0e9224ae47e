"""Read runs of every kind, as columns and pictures, and compare them. No lease is taken.

Run directories enter; tables, SVG pictures and comparisons leave. `commit_search.py` is the one
module that writes: `treewright.search_commits` opens a tree run, searches, and reads it.

The package may import `tree`, `proving`, `search` and the packages below them; `dashboard`,
`trackers` and `cli` import it.

Read first: `run_loader.py` (`treewright.load_run`), `tree_run.py` (a run as tables),
`comparison.py`.
"""
