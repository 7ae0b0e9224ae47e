"""Search trees over any kind of work: a tree, policies that choose, and a durable study.

Settings and a policy enter; tasks leave, and their scores come back. Knows neither git nor Lean.
`tree.py` keeps the statistics, `policies/` choose (pure), `sequencer.py` decides which outcomes a
choice knows, `history.py` is the state that the lines of `search_journal.py` add up to,
`durable_search.py` asks, records and tells, and `evaluation_loop.py` gives it workers. `study.py`
opens a search; `recorded_search.py` reads one without its lease. `andor/` has trees and policies
for goals, of which all must be solved.

One number names four things. A policy makes *choice* 5, the decision to grow a child under a node.
*Task* 5 is what a program evaluates for it. *Branch* 5 keeps the statistics of the choice and its
subtree. *Node* 5 is the scored result, if there is one. The root is number 0. A journal *line* is
the record of one such step.

Imports the kernel only. Read first: `durable_search.py`, `sequencer.py`, `policies/best_first.py`.

A policy of another package imports its base classes from here, or from `treewright`:

    from treewright.search import Choice, Policy
"""

from typing import TYPE_CHECKING

from treewright.kernel.exports import lazy_exports

if TYPE_CHECKING:
    from treewright.search.andor.policies.goal_policy import Policy as GoalPolicy
    from treewright.search.policies.policy import Choice, Policy
    from treewright.search.tree import Branch, Status, Tree

_PUBLIC = {
    "Branch": ("treewright.search.tree", "Branch"),
    "Choice": ("treewright.search.policies.policy", "Choice"),
    "GoalPolicy": ("treewright.search.andor.policies.goal_policy", "Policy"),
    "Policy": ("treewright.search.policies.policy", "Policy"),
    "Status": ("treewright.search.tree", "Status"),
    "Tree": ("treewright.search.tree", "Tree"),
}

__all__ = ["Branch", "Choice", "GoalPolicy", "Policy", "Status", "Tree"]


if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__ = lazy_exports(__name__, _PUBLIC)
