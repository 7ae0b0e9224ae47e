"""Search trees over anything: a tree, policies that choose, and a durable study around them.

Knows neither git nor Lean. `tree.py` keeps statistics, `policies/` decide (pure), `sequencer.py`
fixes what a choice may know, `given.py` lets in only what can be read back, `study.py` makes it
durable, `running.py` gives it workers.
"""
