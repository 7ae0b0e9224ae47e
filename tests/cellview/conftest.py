"""Proof runs on the worker's Lean session."""

from tests.proving.runs import prove, sessions

__all__ = ["prove", "sessions"]
