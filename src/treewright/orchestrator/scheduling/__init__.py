"""What to try first, who may run, when to wait, and attempts side by side."""
