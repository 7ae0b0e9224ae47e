"""Lean scripts: read off a solved graph, formatted, and how far an unsolved search came."""
