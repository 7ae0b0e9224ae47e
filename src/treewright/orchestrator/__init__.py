"""Closing many Lean goals with a portfolio of strategies, on a machine that is also used otherwise.

Goals enter: from Python, from a bank, or from the sorries of a project. Results leave, with a
ledger of all attempts; only the replay check turns a strategy's claim into a proof.

The package may import `proving`, `premises`, `lean`, `llm`, `search` and `kernel`, and not `tree`.
Read `scheduler.py` first, then `scheduling/attempt_runner.py` and `workers/base.py`.
"""
