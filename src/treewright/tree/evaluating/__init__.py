"""The evaluation of one candidate, from idea to score: here, on another machine, or simulated.

Enters: an `EvalRequest` or a `HeldoutRequest`, which hold everything that the work depends on.
Leaves: an `EvalOutcome` or a `HeldoutOutcome`, for the coordinator to record.
May import: `tree.ideas`, `tree.agents`, `tree.deciding`, `tree.guard`, `tree.repository`,
`tree.records`, `kernel`.
Read first: `worker.py` (the entry of executors), `evaluation.py` (the steps of one candidate),
`measuring.py` (tests and sweeps). `remote_executor.py` sends the same work to other machines.
"""
