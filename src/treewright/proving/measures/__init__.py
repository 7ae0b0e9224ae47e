"""Measures of one search: pure functions of trace records. Formulas: docs/measures.md.

Random draws come from a given seed. A measure that is undefined for the records is None, with the
reason in `undefined`.
"""
