"""Treewright grows search trees over work that is slow, costly and easy to lose."""

__version__ = "0.1.0"
