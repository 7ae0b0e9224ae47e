"""Runs in experiment trackers: brought up to date from their records, as often as one likes."""
