"""Distrust of candidates: running their commands so that their results stay true.

Code under test runs as the same user as the search. It can reach protected files, the directories
of the run, the baselines by which candidates are judged, and git's records of its worktree. This
package keeps such code apart, finds its changes, and undoes them.

Enters: a worktree with a candidate's commit, and the run's record of the root commit.
Leaves: results of known origin, or a `Distrusted` with the reason code for the record.
May import: `tree.repository`, `tree.records`, `tree.config`, `llm`, `kernel`.
Read first: `commands.py` (the order of events in a sweep), `isolation.py` (the reach of a command),
`baselines.py` (the numbers that decide).
"""
