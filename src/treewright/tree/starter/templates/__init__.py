"""Sweeps that `treewright init` writes. They run in the user's repository, with what Python has."""
