"""One Lean process: the protocol, the requests, and the values that come back.

What enters: a host that says how the process is started, and requests of the caller. What leaves:
the values of `answers.py`. No value here says "proved"; `verify` alone does.

Read first: `host_session.py`, `answers.py`, `protocol.py`.
"""
