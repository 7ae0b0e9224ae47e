"""Changes that fake a better result, tried on the user's sweep: `treewright doctor --cheats`.

Enters: the repository's last commit and its configuration.
Leaves: a verdict for every cheat of `corpus.toml`, and advice against those that got through. Each
cheat is fitted to the sweep in a temporary copy of the repository, and goes the way of every
candidate: patch, commit, tests, sweep, score, gate.
May import: all of `tree`, and `kernel`.
Read first: `trial.py` (the runs), `corpus.py` (the cheats), `verdicts.py` (their outcomes).
"""

from __future__ import annotations

from treewright.tree.cheats.trial import Trial, try_cheats
from treewright.tree.cheats.verdicts import Verdict

__all__ = ["Trial", "Verdict", "try_cheats"]
