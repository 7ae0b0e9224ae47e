"""Benchmarks on problems of other projects. Each command gets the path of a checkout that the user
fetched.
"""
