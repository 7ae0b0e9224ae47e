"""Proof runs on the worker's Lean session."""

from tests.proving.proving import prove, sessions

__all__ = ["prove", "sessions"]
