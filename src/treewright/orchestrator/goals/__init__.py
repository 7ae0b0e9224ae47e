"""Goals: their sources, their Lean text, and the hash that equal goals share.

Banks and the sorries of projects enter; goals, statements and hashes leave. The package may import
`lean` and `kernel`. Read `bank.py` first, then `statements.py` and `normal_form.py`.
"""
