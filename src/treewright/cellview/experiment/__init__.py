"""Experiments: a plan, its grid of proof runs, and their comparison."""
