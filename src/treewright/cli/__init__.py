"""The command line: each module holds one command or related commands, which call an engine.

Flags and files enter; text on stdout (for programs), text on stderr (for people) and an exit code
leave. The package may import every other package, and no package imports it. Modules of other
packages are imported inside the commands, so that `--help` stays fast.

Read first: `main.py` (which command runs, and the exit codes), `options.py` (headings, defaults and
shared options), `tree.py` (a command).
"""
