"""Runs of every kind, looked at: as columns, as pictures, side by side. Reads, and nothing else."""
