"""Copy runs to experiment trackers.

A run of `runs` enters; a tracker's own records leave. A second call adds only new records. The
package may import `runs` and the packages below it; only `cli` imports it.

Read first: `tracked_run.py` (what a tracker gets), `mlflow.py` (how it is written).
"""
