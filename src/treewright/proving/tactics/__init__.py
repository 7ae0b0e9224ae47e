"""Tactic sources: each suggests tactics for a goal, as a `source.TacticSource`.

Goals and knowledge about them enter, and ranked candidates leave. The sources may import
`premises`, `lean` and `llm`. Read first: `source.py` (the interface), `factory.py` (which sources a
run has), `core.py` (the rules of core Lean).
"""
