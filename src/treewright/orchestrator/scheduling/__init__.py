"""The parts of the scheduler: ranking, slots, the throttle, races, and executors.

Goals and workers enter; recorded results leave. The package may import `workers`, `ledger`, `goals`
and `kernel`. Read `goal_queue.py` first, then `attempt_runner.py` and `dispatch.py`.
"""
