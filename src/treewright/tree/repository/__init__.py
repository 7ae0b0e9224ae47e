"""Git: its commands, and the worktrees and branches that belong to a run."""
