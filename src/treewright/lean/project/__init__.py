"""Lake projects: packages, modules, their order, and the cache of compiled modules.

What enters: a directory with a Lake configuration. What leaves: the compiled modules that a Lean
process needs before it can read a file of the project. The configuration is read, never run.

Read first: `workspace.py`, `project.py`, `module_store.py`.
"""
