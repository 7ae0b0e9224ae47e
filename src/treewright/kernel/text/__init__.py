"""Text in and out: JSON from outside, errors of configurations, Markdown, SVG, numbers.

Imports nothing of the kernel. Read first: `jsontext.py`, `numbers.py`, `svg.py`.
"""
