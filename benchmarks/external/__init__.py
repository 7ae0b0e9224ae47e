"""Measurements on the work of other people. Each command gets a checkout that the user fetched."""
