"""Statistics that several packages share: Student's t and differences within rounding. Pure."""
