"""A change of a repository looked at by Lean: which `sorry`s came and went, and proofs for the new.

Knows git and Lean, and of the place where it runs only the files that a GitHub runner names.
"""
