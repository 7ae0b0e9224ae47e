"""A read-only web view of run directories and of the orchestrator's ledger.

HTTP requests (GET and HEAD) enter; pages, JSON documents and server-sent events leave. The package
takes no lease and writes nothing into a run. It may import `runs`, `tree`, `orchestrator`,
`cellview`, `proving` and the packages below them; only `mcp_server` and `cli` import it.

Read first: `app.py` (which address gives which document), `roots.py` (how runs are found),
`tree_library.py` (how a growing run is read).
"""
