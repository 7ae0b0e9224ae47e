"""What a search did, in numbers: pure functions of trace records. Formulas: docs/measures.md.

Whatever is drawn at random here is drawn from a given seed. What is undefined for the records at
hand is None, beside the reason why.
"""
