"""The strategies. Each file has one worker: a probe of its availability, and `run`.

A goal and a time limit enter; a claim or a failure leaves. The package may import `goals`,
`ledger`, `marketplace`, `byt5`, `lean`, `proving`, `premises` and `llm`, but not the scheduler.
Read `worker.py` first, then `micro.py` and `attempt.py`.
"""
