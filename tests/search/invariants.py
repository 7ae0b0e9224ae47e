"""The invariants of a search tree, recomputed from its choices."""

from __future__ import annotations

import math

from treewright.search.tree import Branch, Status, Tree


def check(tree: Tree) -> None:
    """Raise an AssertionError that names the first branch and statistic that is wrong."""
    below = _subtrees(tree)
    for branch in tree.branches:
        _check_branch(tree, branch, below[branch.number])
    scored = [b for b in tree.branches if b.node is not None and b.node.score is not None]
    assert tree.pending == sum(b.status is Status.PENDING for b in tree.branches), "pending"
    assert tree.lowest == min((b.value for b in scored), default=math.inf), "lowest"
    assert tree.highest == max((b.value for b in scored), default=-math.inf), "highest"
    if scored:
        assert tree.best is not None, "best"
        assert tree.best.value == tree.highest, "best"
    growing = {b.number for b in tree.branches if tree.can_grow(b)}
    assert {b.number for b in tree.growing} == growing, "growing"
    assert len(tree.growing) == len(growing), "growing twice"
    best = tree.best_growing()
    if growing:
        assert best is not None, "best_growing"
        expected = min(growing, key=lambda n: _rank(tree.branches[n]))
        assert best.number == expected, f"best_growing is {best.number}, not {expected}"
    else:
        assert best is None, "best_growing of none"
    assert sum(len(level) for level in tree.levels) == len(tree.branches), "levels"


def _subtrees(tree: Tree) -> list[list[Branch]]:
    below: list[list[Branch]] = [[] for _ in tree.branches]
    for branch in reversed(tree.branches):
        below[branch.number].append(branch)
        if branch.parent is not None:
            assert branch.parent.number < branch.number, f"{branch.number}: parent is younger"
        if branch.parent is not None and tree.sums_subtrees:
            below[branch.parent.number] += below[branch.number]
    return below


def _check_branch(tree: Tree, branch: Branch, subtree: list[Branch]) -> None:
    name = f"branch {branch.number}"
    parent = branch.parent
    assert tree.branches[branch.number] is branch, name
    assert branch.depth == (0 if parent is None else parent.depth + 1), f"{name}: depth"
    assert branch in tree.levels[branch.depth], f"{name}: levels"
    assert (branch.node is not None) == (branch.status in (Status.OPEN, Status.CLOSED)), name
    scored = [b for b in subtree if b.node is not None and b.node.score is not None]
    failed = [b for b in subtree if b.status is Status.FAILED]
    assert branch.visits == len(scored) + len(failed), f"{name}: visits"
    assert branch.failures == len(failed), f"{name}: failures"
    assert branch.reserved == sum(b.status is Status.PENDING for b in subtree), f"{name}: reserved"
    assert branch.growing == sum(tree.can_grow(b) for b in subtree), f"{name}: growing"
    _close(branch.total, [b.value - tree.origin for b in scored], f"{name}: total")
    _close(branch.squares, [(b.value - tree.origin) ** 2 for b in scored], f"{name}: squares")
    peak = max((b.value for b in scored), default=-math.inf)
    assert branch.peak == peak, f"{name}: peak"
    tried = [b for b in tree.branches if b.parent is branch]
    children = [b for b in tried if b.node is not None]
    assert branch.tries == len(tried), f"{name}: tries"
    assert {c.number for c in branch.children} == {c.number for c in children}, f"{name}: children"
    assert branch.child_failures == sum(b.status is Status.FAILED for b in tried), name
    assert branch.child_reserved == sum(b.status is Status.PENDING for b in tried), name
    _close(branch.child_total, [c.value - tree.origin for c in children], f"{name}: child_total")
    _close(
        branch.child_squares,
        [(c.value - tree.origin) ** 2 for c in children],
        f"{name}: child_squares",
    )
    _close(branch.prior_sum, [c.prior for c in children], f"{name}: prior_sum")


def _close(kept: float, terms: list[float], name: str) -> None:
    exact = math.fsum(terms)
    scale = math.fsum(abs(term) for term in terms)
    assert math.isclose(kept, exact, rel_tol=1e-9, abs_tol=1e-12 * scale + 1e-300), name


def _rank(branch: Branch) -> tuple[float, int]:
    scored = branch.node is not None and branch.node.score is not None
    return (-branch.value if scored else -math.inf, branch.number)
