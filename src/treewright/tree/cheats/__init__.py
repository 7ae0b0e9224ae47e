"""Changes that fake a better result, tried on the user's own sweep: `treewright doctor --cheats`.

Each cheat of `corpus.toml` is fitted to the sweep in a copy of the repository that is thrown away,
and goes the way of every candidate: patch, commit, tests, sweep, score, gate.
"""

from __future__ import annotations

from treewright.tree.cheats.trial import Trial, try_cheats
from treewright.tree.cheats.verdicts import Verdict

__all__ = ["Trial", "Verdict", "try_cheats"]
