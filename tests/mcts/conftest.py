"""Proof runs on the worker's Lean session."""

from tests.mcts.proving import prove, sessions

__all__ = ["prove", "sessions"]
