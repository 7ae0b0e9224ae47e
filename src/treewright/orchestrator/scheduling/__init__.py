"""The parts of the scheduler: slots, the throttle, attempts, executors, and stopping.

Goals and workers enter; recorded results leave. The package may import `workers`, `ledger`,
`bandit`, `goals` and `kernel`. Read `attempt_runner.py` first, then `dispatch.py` and `lanes.py`.
"""
