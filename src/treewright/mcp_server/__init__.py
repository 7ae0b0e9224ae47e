"""An MCP server over stdio, which offers Lean and code searches to coding agents.

Tool calls enter as JSON on stdin; typed, bounded answers leave on stdout. Each tool calls the same
engine as the matching command. Files are read and written only inside the given roots. A time-out
or a lost Lean is an error, never an answer. The package may import every package but `cli`.

Read first: `server.py` (how a call is run), `tool.py` (what a tool is), `goal_tools.py` (two
tools).
"""
