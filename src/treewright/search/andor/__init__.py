"""Search over AND/OR graphs: goals of which one way, and all goals of that way, must be solved.

Edges and values enter; the next goal to work on leaves. Imports `search.policies.policy` for the
types of settings. Read first: `graph.py`, `visits.py`, `policies/mcts.py`.
"""
