"""Measurements of treewright against something people know, side by side in one run."""
