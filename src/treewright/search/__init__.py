"""Search trees over any kind of work: a tree, policies that choose, and a durable study.

Settings and a policy enter; tasks leave, and their scores come back. Knows neither git nor Lean.
`tree.py` keeps the statistics, `policies/` choose (pure), `sequencer.py` decides which outcomes a
choice knows, `study.py` makes the search durable and `evaluation_loop.py` gives it workers.
`andor/` has the same for goals, of which all must be solved.

One number names four things. A policy makes *choice* 5, the decision to grow a child under a node.
*Task* 5 is what a program evaluates for it. *Branch* 5 keeps the statistics of the choice and its
subtree. *Node* 5 is the scored result, if there is one. The root is number 0. A journal *line* is
the record of one such step.

Imports the kernel only. Read first: `study.py`, `sequencer.py`, `policies/best_first.py`.

A policy of another package imports its base classes from here, or from `treewright`:

    from treewright.search import Choice, Policy
"""

from typing import TYPE_CHECKING

from treewright.kernel.exports import lazy_exports

if TYPE_CHECKING:
    from treewright.search.andor.policies.base import Policy as GoalPolicy
    from treewright.search.branch import Branch, Status
    from treewright.search.policies.base import Choice, Policy
    from treewright.search.tree import Tree

_PUBLIC = {
    "Branch": ("treewright.search.branch", "Branch"),
    "Choice": ("treewright.search.policies.base", "Choice"),
    "GoalPolicy": ("treewright.search.andor.policies.base", "Policy"),
    "Policy": ("treewright.search.policies.base", "Policy"),
    "Status": ("treewright.search.branch", "Status"),
    "Tree": ("treewright.search.tree", "Tree"),
}

__all__ = ["Branch", "Choice", "GoalPolicy", "Policy", "Status", "Tree"]


if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__ = lazy_exports(__name__, _PUBLIC)
