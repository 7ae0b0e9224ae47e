"""Chat endpoints: one client, one rule for keys and one set of limits for every engine.

A `Request` for an `Endpoint` enters; an `Answer` with its usage leaves, or a `ChatError` with a
code. `client.py` asks, `endpoint.py` says where, `keys.py` with which key, `request_queue.py` keeps
this process within the `limits.py` of an endpoint, `chat.py` is the protocol, `usage.py` and
`usage_log.py` count tokens and cost, and `redaction.py` removes keys from texts that are kept.

Imports the kernel only. Other HTTP requests are made with `kernel.http_client` directly.
Read first: `client.py`, `chat.py`, `keys.py`.
"""
