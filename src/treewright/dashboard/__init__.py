"""A read-only web view over run directories and the ledger.

Nothing here takes a lease, writes into a run or answers anything but GET and HEAD.
"""
