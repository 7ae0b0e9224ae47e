"""The records of a tree run: their types, their files, and the state that they describe.

Enters: events of the search.
Leaves: the manifest (`model.Manifest`), durable on disk.
May import: `llm`, `kernel`.
Read first: `model.py` (the records), `events.py` (the lines of the journal), `store.py` (the
files).
"""
