"""An MCP server over stdio: Lean without a toolchain, and code searches, for coding agents.

Every tool is a thin adapter of what the commands use. Answers are typed and bounded, what is read
and written is inside the given roots, and a fault is an error and never an answer.
"""
