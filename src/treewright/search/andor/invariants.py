"""The invariants of an AND/OR graph, recomputed from its nodes and edges.

For tests and for checking recorded runs: a check visits the whole graph.
"""

from __future__ import annotations

from collections import Counter

from treewright.search.andor.graph import Edge, Graph, Node, Status


def check(graph: Graph, *, idle: bool = True) -> None:
    """Raise an AssertionError that names the first invariant that does not hold.

    With `idle` no agent works on the graph, so no reservation may be left.
    """
    _identities(graph)
    _order(graph)
    for edge in graph.edges:
        _edge(edge)
    for node in graph.nodes:
        _node(node)
    _require(graph.solved == sum(n.status is Status.SOLVED for n in graph.nodes), "solved count")
    _require(graph.dead == sum(n.status is Status.DEAD for n in graph.nodes), "dead count")
    if idle:
        reserved = [each.id for each in (*graph.nodes, *graph.edges) if each.virtual]
        _require(not reserved, f"virtual losses left on {reserved}")


def _require(condition: bool, invariant: str) -> None:
    if not condition:
        raise AssertionError(invariant)


def _identities(graph: Graph) -> None:
    _require(graph.nodes[0] is graph.root, "the root is node 0")
    for index, node in enumerate(graph.nodes):
        _require(node.id == index, f"node {node.id} stands at {index}")
        _require(graph.by_key.get(node.key) is node, f"the key of node {index} leads elsewhere")
    _require(len(graph.by_key) == len(graph.nodes), "as many keys as nodes")
    for index, edge in enumerate(graph.edges):
        _require(edge.id == index, f"edge {edge.id} stands at {index}")
    owned = [edge.id for node in graph.nodes for edge in node.edges]
    _require(sorted(owned) == list(range(len(graph.edges))), "every edge has one parent")
    above = Counter((e.id, c.id) for e in graph.edges for c in e.children)
    below = Counter((e.id, n.id) for n in graph.nodes for e in n.parents)
    _require(above == below, "edges and parents agree")


def _order(graph: Graph) -> None:
    """Check that ranks grow along edges, so that there is no circle; check the depths."""
    for edge in graph.edges:
        for child in edge.children:
            _require(child.rank > edge.parent.rank, f"edge {edge.id} goes down in rank")
    depth = {graph.root.id: 0}
    level = [graph.root]
    while level:
        following: list[Node] = []
        for node in level:
            for edge in node.edges:
                for child in edge.children:
                    if child.id not in depth:
                        depth[child.id] = depth[node.id] + 1
                        following.append(child)
        level = following
    for node in graph.nodes:
        _require(depth.get(node.id) == node.depth, f"depth of node {node.id}")


def _edge(edge: Edge) -> None:
    unsolved = sum(child.status is not Status.SOLVED for child in edge.children)
    _require(edge.unsolved == unsolved, f"unsolved children of edge {edge.id}")
    dead = edge.is_excluded or any(child.status is Status.DEAD for child in edge.children)
    expected = Status.DEAD if dead else Status.OPEN if unsolved else Status.SOLVED
    _require(edge.status is expected, f"status of edge {edge.id}")


def _node(node: Node) -> None:
    name = f"node {node.id}"
    solved = any(edge.status is Status.SOLVED for edge in node.edges)
    alive = any(edge.status is not Status.DEAD for edge in node.edges)
    dead = node.exhausted and not alive
    expected = Status.SOLVED if solved else Status.DEAD if dead else Status.OPEN
    _require(node.status is expected, f"status of {name}")
    live = [edge for edge in node.edges if edge.status is Status.OPEN]
    _require(node.live == ([] if solved else live), f"live edges of {name}")
    _require(node.tries >= 0 and node.virtual >= 0, f"tries of {name}")
    followed = sum(edge.visits for edge in node.edges)
    _require(node.visits == node.tries + followed, f"visits of {name}")
    _require(0.0 <= node.total <= node.visits + 1e-6, f"total of {name}")
    if solved:
        solution = node.solution
        _require(solution is not None and solution.status is Status.SOLVED, f"solution of {name}")
        assert solution is not None
        size = 1 + sum(child.solution_size for child in solution.children)
        _require(node.solution_size == size, f"size of the solution of {name}")
    else:
        _require(node.solution is None, f"{name} has a solution and is not solved")
