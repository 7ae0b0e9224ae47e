"""Git: commands, worktrees, refs, and what commits contain. Git is asked, not imitated.

Enters: paths of repositories, commits, and names of nodes and candidates.
Leaves: worktrees with exactly a commit's files, changes between trees, digests of code.
May import: `tree.records`, `kernel`.
Read first: `git.py` (how git is called), `worktrees.py` (the checkouts of a run),
`private_repository.py` (what commands in a worktree get in place of the user's repository).
"""
