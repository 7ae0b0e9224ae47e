"""Closing many Lean goals with a portfolio of strategies, on a machine someone else is using.

`scheduler` decides what to try next, by what `scheduling` works out; `workers` try; `ledger`
remembers every attempt; `goals` says which goals there are. Only the replay check says "proved".
"""
