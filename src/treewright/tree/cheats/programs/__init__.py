"""Texts that are put into candidates: what the cheats have in common, by language."""
