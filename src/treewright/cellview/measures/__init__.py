"""Measures of damage across the trials of an experiment.

Pure; random draws come from a given seed.
"""
