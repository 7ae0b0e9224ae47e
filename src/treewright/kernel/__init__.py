"""Durable runs: leases, journals, atomic files, processes, executors, statistics.

Every other package stands on this one, which imports none of them and knows neither git nor Lean.
It promises three things: a write that returned is on disk, a run has one owner at a time, and a
process that was started here can be ended together with its descendants.

- `storage`: files that survive crashes, the lease and the journal of a run, SQLite.
- `procs`: running commands, with time limits, containment and the end of all their descendants.
- `executors`: handing requests to threads or to the workers of a cluster.
- `stats.py`: Student's t, and which differences are rounding.
- `text`: JSON from outside, messages about configurations, Markdown, SVG, numbers.

Read first: `storage/atomic.py`, `storage/journal.py`, `storage/lease.py`.
"""
