"""Chat endpoints, for every engine: one client, one rule for keys, one queue a machine.

`client` asks; `endpoint` says where and `keys` with which key; `turns` keeps everybody on this
machine within an endpoint's `limits`; `wire` is the protocol; `usage` is what it cost;
`redaction` takes keys out of whatever is kept. Other HTTP calls are made with
`kernel.http_client` alone.
"""
