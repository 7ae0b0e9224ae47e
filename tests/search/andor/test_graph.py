"""The graph keeps its books right, and refuses circles. Random growth: test_policies.py."""

from __future__ import annotations

from treewright.search.andor.graph import Changes, Child, Graph, Status


def children(*keys: str) -> list[Child]:
    return [Child(key, 0.5) for key in keys]


def test_an_edge_needs_all_its_children() -> None:
    tree, changes = Graph("root"), Changes()
    edge = tree.add_edge(tree.root, "constructor", None, children("a", "b"), changes)
    assert edge is not None
    a, b = edge.children
    tree.add_edge(a, "rfl", None, [], changes)
    tree.check()
    assert a.status is Status.SOLVED
    assert tree.root.status is Status.OPEN
    tree.add_edge(b, "rfl", None, [], changes)
    tree.check()
    assert [node.key for node in changes.solved] == ["a", "b", "root"]
    assert tree.root.solution is edge
    assert tree.root.solution_size == 3


def test_a_goal_that_occurs_twice_is_not_dropped() -> None:
    tree, changes = Graph("root"), Changes()
    edge = tree.add_edge(tree.root, "constructor", None, children("a", "a"), changes)
    assert edge is not None
    assert [child.key for child in edge.children] == ["a", "a"]
    assert edge.unsolved == 2
    tree.check()
    tree.add_edge(edge.children[0], "rfl", None, [], changes)
    tree.check()
    assert tree.root.status is Status.SOLVED


def test_a_dead_child_kills_the_edge_and_an_exhausted_parent() -> None:
    tree, changes = Graph("root"), Changes()
    edge = tree.add_edge(tree.root, "t", None, children("a", "b"), changes)
    assert edge is not None
    tree.exhaust(edge.children[1], changes)
    tree.check()
    assert edge.status is Status.DEAD
    assert tree.root.status is Status.OPEN  # something else may still be tried there
    tree.exhaust(tree.root, changes)
    tree.check()
    assert tree.root.status is Status.DEAD
    assert [node.key for node in changes.dead] == ["b", "root"]


def test_a_goal_of_an_ancestor_is_a_circle_on_every_path() -> None:
    tree, changes = Graph("root"), Changes()
    first = tree.add_edge(tree.root, "t", None, children("a", "b"), changes)
    assert first is not None
    a, b = first.children
    below = tree.add_edge(a, "u", None, children("c"), changes)
    assert below is not None
    c = below.children[0]
    assert tree.add_edge(c, "v", None, children("c"), changes) is None
    assert tree.add_edge(c, "v", None, children("d", "a"), changes) is None
    assert tree.add_edge(c, "v", None, children("root"), changes) is None
    assert "d" not in tree.by_key  # a refused edge leaves nothing behind
    assert tree.add_edge(c, "v", None, children("b"), changes) is not None  # shared, no circle
    tree.check()
    assert tree.add_edge(b, "w", None, children("a"), changes) is None  # b is below a now
    assert b.depth == 1
    assert b.rank > c.rank
    tree.check()


def test_depth_is_the_shortest_way() -> None:
    tree, changes = Graph("0"), Changes()
    node = tree.root
    for key in "123":
        edge = tree.add_edge(node, "t", None, children(key), changes)
        assert edge is not None
        node = edge.children[0]
    tree.add_edge(node, "t", None, children("4"), changes)
    assert tree.by_key["4"].depth == 4
    tree.add_edge(tree.root, "u", None, children("3"), changes)
    tree.check()
    assert tree.by_key["4"].depth == 2
