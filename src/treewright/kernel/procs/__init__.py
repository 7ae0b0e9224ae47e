"""Processes: running a command to its end, and ending everything that it started.

A command line enters; a `ProcessResult` and a log leave. `process.py` runs a command, `watchdog.py`
ends it when Treewright is killed, `containment.py` and `sandbox.py` limit it, and
`cancellation.py` holds the events that stop it. `console.py` is about this process itself: Ctrl-C,
and a stderr that may close. Imports `storage` for the log file.
Read first: `process.py`, `proctree.py`, `cancellation.py`.
"""
