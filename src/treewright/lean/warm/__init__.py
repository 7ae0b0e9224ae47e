"""Lean processes kept ready by one process of the user for all calls of the user."""
