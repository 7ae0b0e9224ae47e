"""A run as a whole: starting it, one depth after another, keeping it in order."""
