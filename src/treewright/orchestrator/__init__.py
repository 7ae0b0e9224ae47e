"""Closing many Lean goals with a portfolio of strategies, on a machine someone else is using.

`scheduler` decides what to try next (`bandit`, `lanes`, `throttle` are its pure parts),
`workers` try, `ledger` remembers every attempt. Only the replay check says "proved".
"""
