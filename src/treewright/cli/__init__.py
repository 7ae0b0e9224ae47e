"""The command line: one file a command, no logic. Heavy imports happen inside commands."""
